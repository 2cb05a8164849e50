package main

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// source returns the comments of a Go file, and its messages: help texts, log and error messages. Of a test
// it returns the comments and the names of tests.
func source(name string, text []byte) ([]passage, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var passages []passage
	for _, group := range file.Comments {
		passages = append(passages, paragraphs(set.Position(group.Pos()).Line, group.Text())...)
	}
	if strings.HasSuffix(name, "_test.go") {
		return append(passages, testNames(set, file)...), nil
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if message := messageOf(node); message != nil {
			if said, ok := literal(message); ok {
				passages = append(passages, paragraphs(set.Position(message.Pos()).Line, said)...)
			}
		}
		return true
	})
	return passages, nil
}

// testNames returns the names of tests, which are sentences, too.
func testNames(set *token.FileSet, file *ast.File) []passage {
	var passages []passage
	for _, declaration := range file.Decls {
		if name := testName(declaration); name != "" {
			passages = append(passages, passage{line: set.Position(declaration.Pos()).Line, text: name})
		}
	}
	return passages
}

// paragraphs returns the running text of a comment or help text. Indented text is code.
func paragraphs(line int, said string) []passage {
	var passages []passage
	var parser comment.Parser
	var add func([]comment.Block)
	add = func(blocks []comment.Block) {
		for _, block := range blocks {
			switch block := block.(type) {
			case *comment.Paragraph:
				passages = append(passages, passage{line: line, text: flat(block.Text)})
			case *comment.List:
				for _, item := range block.Items {
					add(item.Content)
				}
			}
		}
	}
	add(parser.Parse(said).Content)
	return passages
}

func flat(texts []comment.Text) string {
	var b strings.Builder
	for _, text := range texts {
		switch text := text.(type) {
		case comment.Plain:
			b.WriteString(string(text))
		case comment.Italic:
			b.WriteString(string(text))
		case *comment.Link:
			b.WriteString(flat(text.Text))
		case *comment.DocLink:
			b.WriteString(flat(text.Text))
		}
	}
	return b.String()
}

// The calls whose argument is a message, by the name of the function: which argument it is, from the end if negative.
var (
	messageCalls = map[string]int{
		"New": 0, "Errorf": 0,
		"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
		"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
		"String": -1, "Bool": -1, "Int": -1, "Int64": -1, "Duration": -1, "StringArray": -1, "StringSlice": -1,
		"StringVar": -1, "BoolVar": -1, "IntVar": -1, "Int64Var": -1, "DurationVar": -1, "StringArrayVar": -1, "StringSliceVar": -1,
		"StringVarP": -1, "BoolVarP": -1, "IntVarP": -1, "Int64VarP": -1, "DurationVarP": -1, "StringArrayVarP": -1, "StringSliceVarP": -1,
	}
	messageFields = []string{"Short", "Long", "Help"}
)

// messageOf returns the expression of a message that the node holds.
func messageOf(node ast.Node) ast.Expr {
	switch node := node.(type) {
	case *ast.KeyValueExpr:
		if key, ok := node.Key.(*ast.Ident); ok && slices.Contains(messageFields, key.Name) {
			return node.Value
		}
	case *ast.CallExpr:
		function, ok := node.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		at, ok := messageCalls[function.Sel.Name]
		if at < 0 {
			at += len(node.Args)
		}
		if ok && at >= 0 && at < len(node.Args) {
			return node.Args[at]
		}
	}
	return nil
}

// literal is the text of string literals that may be joined by +. Other joined parts count as one word.
func literal(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		if e.Op != token.ADD || !ok && !also {
			return "", false
		}
		if !ok {
			left = "value"
		}
		if !also {
			right = "value"
		}
		return left + right, true
	}
	return "", false
}
