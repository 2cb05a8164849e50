package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quotedMessages returns the messages of the page: the code in the first column of each table with the head "message".
func quotedMessages(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	var quoted []string
	within := false
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "| message |") {
			within = true
			continue
		}
		if within = within && strings.HasPrefix(line, "|"); within {
			for _, message := range code.FindAllString(strings.Split(line, "|")[1], -1) {
				quoted = append(quoted, strings.Trim(message, "`"))
			}
		}
	}
	return quoted
}

// programTexts returns the texts that the recorder can print: the string literals of its code, and its SQL.
func programTexts(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, dir := range []string{"checkpoint", "cmd/recorder", "deltafifo", "history", "internal", "kube", "migrations", "reflector", "sink", "timeline", "verify"} {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(path, ".sql"):
				text, err := os.ReadFile(path)
				texts = append(texts, string(text))
				return err
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
				if err == nil {
					texts = append(texts, literals(file)...)
				}
				return err
			}
			return nil
		}))
	}
	return texts
}

// literals returns the strings of a file. It joins the operands of a sum.
func literals(file *ast.File) []string {
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text := textOf(e)
		if text != "" {
			texts = append(texts, text)
		}
		return text == ""
	})
	return texts
}

// textOf returns the text of a literal, or of a sum of literals.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // the parser has accepted it
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return textOf(e.X) + textOf(e.Y)
		}
	}
	return ""
}

func TestTheCodeHasEachMessageOfTheTroubleshootingPage(t *testing.T) {
	quoted, all := quotedMessages(t), strings.Join(programTexts(t), "\n")
	require.Greater(t, len(quoted), 80)
	var unknown []string
	for _, message := range quoted {
		parts := strings.Split(message, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(part))
		}
		if !regexp.MustCompile(strings.Join(parts, `[^\n]*`)).MatchString(all) {
			unknown = append(unknown, message)
		}
	}
	require.Empty(t, unknown, "the code does not have these messages")
}
