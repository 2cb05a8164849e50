package main

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// markdown returns the paragraphs and items of lists.
func markdown(page []byte) []passage {
	var passages []passage
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(text.NewReader(page))
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) { // only the function below could fail
		if !entering || node.Type() != ast.TypeBlock {
			return ast.WalkContinue, nil
		}
		switch node.Kind() {
		case ast.KindParagraph, ast.KindTextBlock:
			if !describesFlag(node, page) {
				passages = append(passages, passage{line: lineOf(node, page), text: inline(node, page)})
			}
		case ast.KindDocument, ast.KindList, ast.KindListItem, ast.KindBlockquote:
			return ast.WalkContinue, nil
		}
		return ast.WalkSkipChildren, nil
	})
	return passages
}

// describesFlag reports whether the node is an item of a list of flags: it begins with a flag, as code.
func describesFlag(node ast.Node, page []byte) bool {
	if node.Parent().Kind() != ast.KindListItem || node.FirstChild() == nil || node.FirstChild().Kind() != ast.KindCodeSpan {
		return false
	}
	return bytes.HasPrefix(plain(node.FirstChild(), page), []byte("-"))
}

func lineOf(node ast.Node, page []byte) int {
	if node.Lines().Len() == 0 {
		return 1
	}
	return 1 + bytes.Count(page[:node.Lines().At(0).Start], []byte("\n"))
}

// inline is the text of a paragraph as a reader sees it. Code is one word.
func inline(node ast.Node, page []byte) string {
	var b strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			b.Write(child.Segment.Value(page))
			if child.SoftLineBreak() || child.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeSpan:
			b.WriteString("`" + string(plain(child, page)) + "`")
		case *ast.AutoLink:
			b.Write(child.URL(page))
		case *ast.Image, *ast.RawHTML:
		default:
			b.WriteString(inline(child, page))
		}
	}
	return b.String()
}

func plain(node ast.Node, page []byte) []byte {
	var b bytes.Buffer
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if t, ok := child.(*ast.Text); ok {
			b.Write(t.Segment.Value(page))
		}
	}
	return b.Bytes()
}
