package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A fork rewrites the files of tools/cache for one suite.
type fork struct {
	suite string
	drop  map[string]bool // declarations that adapters have, or that a suite excludes: names, and "Receiver.Method"
}

// newFork reads what is dropped: one name a line, # begins a comment.
func newFork(suite, file string) (*fork, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f := &fork{suite: suite, drop: map[string]bool{}}
	for _, name := range strings.Fields(aliased) {
		f.drop[name] = true
	}
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			f.drop[name] = true
		}
	}
	return f, nil
}

// copy rewrites the files of the suite into a folder.
func (f *fork) copy(from, to string) (files []string, err error) {
	all, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, err
	}
	edits := edits(f.suite)
	for _, file := range all {
		name := filepath.Base(file)
		if !takes(f.suite, name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		edited, err := edit(name, string(text), edits[name])
		if err != nil {
			return nil, err
		}
		delete(edits, name)
		rewritten, err := f.rewrite(name, []byte(edited))
		if err != nil {
			return nil, err
		}
		target := filepath.Join(to, name)
		if err := os.WriteFile(target, rewritten, 0o600); err != nil {
			return nil, err
		}
		files = append(files, target)
	}
	if len(edits) > 0 {
		return nil, fmt.Errorf("client-go has changed: it has no %v to edit", slices.Sorted(maps.Keys(edits)))
	}
	return files, nil
}

// edit puts hooks in the place of what tests reach into.
func edit(name, text string, pairs []string) (string, error) {
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			return "", fmt.Errorf("client-go has changed: %s does not contain %q", name, pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text, nil
}

// A cutting is a file from which declarations are cut out.
type cutting struct {
	fork  *fork
	files *token.FileSet
	cuts  [][2]int        // offsets
	used  map[string]bool // names before a dot, in what is kept: packages among them
}

// rewrite cuts out what is dropped, and the imports that are not used then.
func (f *fork) rewrite(name string, text []byte) ([]byte, error) {
	c := &cutting{fork: f, files: token.NewFileSet(), used: map[string]bool{}}
	file, err := parser.ParseFile(c.files, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.function(d)
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				c.general(d)
			}
		}
	}
	for _, i := range file.Imports {
		if name := importName(i); name != "_" && !c.used[name] {
			c.cut(i, nil)
		}
	}
	slices.SortFunc(c.cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var out bytes.Buffer
	last := 0
	for _, cut := range c.cuts {
		out.Write(text[last:cut[0]])
		last = cut[1]
	}
	out.Write(text[last:])
	return out.Bytes(), nil
}

func (c *cutting) cut(n ast.Node, doc *ast.CommentGroup) {
	from := n.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	c.cuts = append(c.cuts, [2]int{c.files.Position(from).Offset, c.files.Position(n.End()).Offset})
}

// keep notes which packages a node uses.
func (c *cutting) keep(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok {
				c.used[id.Name] = true
			}
		}
		return true
	})
}

func (c *cutting) function(d *ast.FuncDecl) {
	gone := d.Recv == nil && c.fork.drop[d.Name.Name]
	if d.Recv != nil {
		of := receiver(d.Recv.List[0].Type)
		gone = c.fork.drop[of] || c.fork.drop[of+"."+d.Name.Name]
	}
	if gone {
		c.cut(d, d.Doc)
		return
	}
	c.keep(d)
}

// general cuts specs out of a declaration, or all of it if none is left.
func (c *cutting) general(d *ast.GenDecl) {
	gone := slices.DeleteFunc(slices.Clone(d.Specs), func(s ast.Spec) bool { return !c.isGone(s, d.Tok) })
	if len(gone) == len(d.Specs) {
		c.cut(d, d.Doc)
		return
	}
	for _, s := range d.Specs {
		if slices.Contains(gone, s) {
			c.cut(s, docOf(s))
		} else {
			c.keep(s)
		}
	}
}

func docOf(s ast.Spec) *ast.CommentGroup {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Doc
	case *ast.ValueSpec:
		return s.Doc
	}
	return nil
}

func (c *cutting) isGone(s ast.Spec, of token.Token) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return c.fork.drop[s.Name.Name]
	case *ast.ValueSpec:
		if id, ok := s.Type.(*ast.Ident); ok && of == token.CONST && c.fork.drop[id.Name] {
			return true
		}
		if s.Names[0].Name == "_" {
			return c.makesDropped(s)
		}
		return slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return c.fork.drop[n.Name] })
	}
	return false
}

// makesDropped finds assertions about a dropped type: var _ Store = &X{}.
func (c *cutting) makesDropped(s *ast.ValueSpec) (gone bool) {
	for _, value := range s.Values {
		ast.Inspect(value, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			gone = gone || ok && c.fork.drop[id.Name]
			return true
		})
	}
	return gone
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// importName is the name by which a file uses an import.
func importName(i *ast.ImportSpec) string {
	if i.Name != nil {
		return i.Name.Name
	}
	from, _ := strconv.Unquote(i.Path.Value) // the parser has taken it
	switch from {
	case "k8s.io/klog/v2":
		return "klog"
	case "github.com/google/gofuzz":
		return "fuzz"
	default:
		return path.Base(from)
	}
}
