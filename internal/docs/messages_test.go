package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// programDirs are the folders of the programs' code.
var programDirs = []string{"apiserver", "checkpoint", "cmd", "deltafifo", "history", "internal", "kube", "migrations", "reflector", "sink", "timeline", "verify"}

// programFiles parses the code of the programs.
func programFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, dir := range programDirs {
		require.NoError(t, filepath.WalkDir(filepath.Join("../..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			return err
		}))
	}
	return files
}

// programTexts returns the texts that the programs can print: the string literals of their code, and their SQL.
func programTexts(t *testing.T) []string {
	t.Helper()
	var texts []string
	for _, file := range programFiles(t) {
		texts = append(texts, literals(file)...)
	}
	scripts, err := filepath.Glob("../../migrations/*.sql")
	require.NoError(t, err)
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts = append(texts, string(text))
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

// pattern returns a pattern that matches texts with a quoted message, in which … stands for any text.
func pattern(message string) *regexp.Regexp {
	parts := strings.Split(message, "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(part))
	}
	return regexp.MustCompile(strings.Join(parts, `[^\n]*`))
}

func TestTheCodeHasEachMessageOfTheTroubleshootingPage(t *testing.T) {
	quoted, all := quotedMessages(t), strings.Join(programTexts(t), "\n")
	require.Greater(t, len(quoted), 80)
	var unknown []string
	for _, message := range quoted {
		if !pattern(message).MatchString(all) {
			unknown = append(unknown, message)
		}
	}
	require.Empty(t, unknown, "the code does not have these messages")
}

// logged returns the messages that the programs log as warnings or errors. It finds the calls by the name of the method
// and of the logger.
func logged(t *testing.T) []string {
	t.Helper()
	files := programFiles(t)
	constants := map[string]ast.Expr{} // by name
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == 1 && len(spec.Values) == 1 {
				constants[spec.Names[0].Name] = spec.Values[0]
			}
			return true
		})
	}
	var messages []string
	for path, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isWarning(call) {
				return true
			}
			message := call.Args[0]
			if len(call.Args) > 1 && strings.HasSuffix(lastName(call.Fun), "Context") {
				message = call.Args[1]
			}
			text := textOf(message)
			for range 2 { // a constant may be another constant
				if text == "" {
					message = constants[lastName(message)]
					text = textOf(message)
				}
			}
			require.NotEmpty(t, text, "%s logs a message that is no constant", path)
			messages = append(messages, text)
			return true
		})
	}
	return messages
}

// isWarning reports whether a call logs a warning or an error.
func isWarning(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	switch method.Sel.Name {
	case "Warn", "WarnContext", "Error", "ErrorContext":
		logger := strings.ToLower(lastName(method.X))
		return strings.HasSuffix(logger, "log") || strings.HasSuffix(logger, "logger") || logger == "logof"
	}
	return false
}

// lastName returns the last name of an expression: b of a.b and of a.b().
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}

func TestTheTroubleshootingPageHasEachWarningAndErrorOfTheLog(t *testing.T) {
	var quoted []*regexp.Regexp
	for _, message := range quotedMessages(t) {
		quoted = append(quoted, pattern(message))
	}
	messages := logged(t)
	require.Greater(t, len(messages), 60)
	var missing []string
	for _, message := range messages {
		if !slices.ContainsFunc(quoted, func(q *regexp.Regexp) bool { return q.MatchString(message) }) {
			missing = append(missing, message)
		}
	}
	require.Empty(t, missing, "docs/troubleshooting.md has no row for these messages of the log")
}
