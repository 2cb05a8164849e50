package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

const (
	maxMethods   = 25
	maxFields    = 15
	maxLines     = 400
	maxTestLines = 600
)

// finding is one thing that is over its limit.
type finding struct {
	file string
	line int
	what string
}

func (f finding) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.what) }

// code collects the types of files, and what is over its limit.
type code struct {
	positions *token.FileSet
	types     map[name]*shape
	methods   map[name][]method
	large     []finding // files
}

// name is the name of a type: a folder can have two packages, one of them of tests.
type name struct{ folder, pkg, typ string }

// shape is a type as it is declared.
type shape struct {
	at     token.Position
	inTest bool
	fields int
}

type method struct {
	name   string
	inTest bool
}

func newCode() *code {
	return &code{positions: token.NewFileSet(), types: map[name]*shape{}, methods: map[name][]method{}}
}

// add reads one file.
func (c *code) add(file string, text []byte) error {
	parsed, err := parser.ParseFile(c.positions, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	inTest, limit := strings.HasSuffix(file, "_test.go"), maxLines
	if inTest {
		limit = maxTestLines
	}
	if lines := bytes.Count(text, []byte("\n")); lines > limit && !ast.IsGenerated(parsed) {
		c.large = append(c.large, finding{file, limit + 1, fmt.Sprintf("the file has %d lines; at most %d", lines, limit)})
	}
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				of := name{path.Dir(file), parsed.Name.Name, receiver(d.Recv.List[0].Type)}
				c.methods[of] = append(c.methods[of], method{d.Name.Name, inTest})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					c.types[name{path.Dir(file), parsed.Name.Name, typ.Name.Name}] =
						&shape{c.positions.Position(typ.Pos()), inTest, fields(typ)}
				}
			}
		}
	}
	return nil
}

// receiver returns the name of the type of a method, without pointer and type parameters.
func receiver(typ ast.Expr) string {
	switch t := typ.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return ""
}

// fields returns the number of fields of a struct, and 0 for another type.
func fields(typ *ast.TypeSpec) int {
	count := 0
	if s, ok := typ.Type.(*ast.StructType); ok {
		for _, field := range s.Fields.List {
			count += max(1, len(field.Names)) // an embedded type has no name
		}
	}
	return count
}

// findings returns all that is over a limit, by file and line.
func (c *code) findings() []finding {
	found := slices.Clone(c.large)
	for of, typ := range c.types {
		methods := c.methodsOf(of, typ.inTest)
		if methods > maxMethods {
			found = append(found, finding{typ.at.Filename, typ.at.Line, fmt.Sprintf("%s has %d methods; at most %d", of.typ, methods, maxMethods)})
		}
		if typ.fields > maxFields && methods > 0 {
			found = append(found, finding{typ.at.Filename, typ.at.Line, fmt.Sprintf("%s has methods and %d fields; at most %d", of.typ, typ.fields, maxFields)})
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line, strings.Compare(a.what, b.what))
	})
	return found
}

// methodsOf counts the names of methods. Files for several systems can have the same method.
func (c *code) methodsOf(of name, inTest bool) int {
	names := map[string]bool{}
	for _, m := range c.methods[of] {
		if inTest || !m.inTest {
			names[m.name] = true
		}
	}
	return len(names)
}
