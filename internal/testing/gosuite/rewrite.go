package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// decl is a declaration of a package's tests at the top level of a file.
type decl struct {
	file  *file
	node  ast.Decl
	names []string        // what it declares
	uses  map[string]bool // the identifiers in it
}

type file struct {
	name      string
	src       []byte
	fset      *token.FileSet
	syntax    *ast.File
	reference bool // it uses what the tests compare with, which is not exchanged
}

func (f *file) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }
func (f *file) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// parse reads the files of a suite.
func (s *suite) parse() error {
	for _, name := range s.files {
		f := &file{name: name, fset: token.NewFileSet(), reference: name == s.reference}
		var err error
		if f.src, err = os.ReadFile(filepath.Join(s.dir, name)); err != nil {
			return err
		}
		if f.syntax, err = parser.ParseFile(f.fset, name, f.src, parser.ParseComments); err != nil {
			return err
		}
		for _, n := range f.syntax.Decls {
			if g, ok := n.(*ast.GenDecl); !ok || g.Tok != token.IMPORT {
				s.decls = append(s.decls, newDecl(f, n))
			}
		}
	}
	return nil
}

func newDecl(f *file, n ast.Decl) *decl {
	d := &decl{file: f, node: n, uses: map[string]bool{}}
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv != nil {
			ast.Inspect(n.Recv.List[0].Type, func(x ast.Node) bool { // a method goes with its type
				if id, ok := x.(*ast.Ident); ok {
					d.names = append(d.names, id.Name)
				}
				return true
			})
		} else {
			d.names = []string{n.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range n.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				d.names = append(d.names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					d.names = append(d.names, id.Name)
				}
			}
		}
	}
	ast.Inspect(n, func(x ast.Node) bool {
		if id, ok := x.(*ast.Ident); ok {
			d.uses[id.Name] = true
		}
		return true
	})
	return d
}

// reachable are the declarations that the named ones and init need, in their order.
func (s *suite) reachable(roots []string) []*decl {
	wanted := map[string]bool{"init": true}
	for _, r := range roots {
		wanted[r] = true
	}
	found := map[*decl]bool{}
	for more := true; more; {
		more = false
		for _, d := range s.decls {
			if !found[d] && slices.ContainsFunc(d.names, func(n string) bool { return n != "_" && wanted[n] }) {
				found[d], more = true, true
				for n := range d.uses {
					wanted[n] = wanted[n] || s.bodies[d.names[0]] == ""
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(s.decls), func(d *decl) bool { return !found[d] })
}

// write returns the files with the kept declarations, by their names.
func (s *suite) write(kept []*decl) (map[string][]byte, error) {
	out := map[string][]byte{}
	for i := 0; i < len(kept); {
		f, body := kept[i].file, new(bytes.Buffer)
		uses := map[string]bool{}
		for ; i < len(kept) && kept[i].file == f; i++ {
			text, err := s.rewrite(kept[i])
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(body, "\n%s\n", text)
			for _, id := range identifiers.FindAllString(text, -1) {
				uses[id] = true
			}
		}
		head := fmt.Sprintf("package %s\n\n%s", f.syntax.Name.Name, s.imports(f, uses))
		out[f.name] = append([]byte(head), body.Bytes()...)
	}
	return out, nil
}

// imports are the imports of a file of which something is used.
func (s *suite) imports(f *file, uses map[string]bool) string {
	var b strings.Builder
	line := func(name, path string) { fmt.Fprintf(&b, "import %s %q\n", name, path) }
	for _, im := range f.syntax.Imports {
		path := strings.Trim(im.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if im.Name != nil {
			name = im.Name.Name
		}
		used := uses[name]
		if name == "." {
			used = slices.ContainsFunc(append(s.exchanged, s.others...), func(n string) bool { return uses[n] || uses["New"+n] })
		}
		if to := s.instead[path]; to != "" && !f.reference {
			path = to
		}
		if used {
			line(name, path)
		}
	}
	if uses["errors"] && !strings.Contains(b.String(), `"errors"`) { // a change uses it
		line("errors", "errors")
	}
	return b.String()
}

// edit replaces the text from one offset to another.
type edit struct {
	from, to int
	text     string
}

// rewrite returns the text of a declaration with constructors in place of zero values, and with the suite's changes.
func (s *suite) rewrite(d *decl) (string, error) {
	if body := s.bodies[d.names[0]]; body != "" {
		s.used[d.names[0]] = true
		return body, nil
	}
	from := d.file.offset(d.node.Pos())
	text := d.file.text(d.node)
	if !d.file.reference {
		edits := s.exchange(d)
		slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from }) // the last first, so that the offsets of the others stay
		for _, e := range edits {
			text = text[:e.from-from] + e.text + text[e.to-from:]
		}
	}
	for _, c := range s.changes {
		if !slices.Contains(d.names, c.in) {
			continue
		}
		if !strings.Contains(text, c.old) {
			return "", fmt.Errorf("%s: %s has no %q: the list of changes is out of date", s.name, c.in, c.old)
		}
		s.used[c.in+c.old] = true
		text = strings.ReplaceAll(text, c.old, c.new)
	}
	return text, nil
}

// exchange finds the zero values of the exchanged types, the variables that have one, and the places where their address is taken.
func (s *suite) exchange(d *decl) (edits []edit) {
	made := map[string]bool{} // variables that become pointers
	replace := func(n ast.Node, text string) {
		edits = append(edits, edit{d.file.offset(n.Pos()), d.file.offset(n.End()), text})
	}
	literal := func(x ast.Expr) string {
		if c, ok := x.(*ast.CompositeLit); ok && len(c.Elts) == 0 {
			return s.constructor(d.file, c.Type)
		}
		return ""
	}
	ast.Inspect(d.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if c := s.constructor(d.file, n.Type); c != "" && len(n.Values) == 0 {
				replace(n.Type, "= "+c)
				for _, id := range n.Names {
					made[id.Name] = true
				}
			}
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 && literal(n.Rhs[0]) != "" {
				made[n.Lhs[0].(*ast.Ident).Name] = true
			}
		case *ast.UnaryExpr:
			if c := literal(n.X); n.Op == token.AND && c != "" {
				replace(n, c)
				return false
			}
		case *ast.CompositeLit:
			if c := literal(n); c != "" {
				replace(n, c)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "new" {
				if c := s.constructor(d.file, n.Args[0]); c != "" {
					replace(n, c)
				}
			}
		}
		return true
	})
	ast.Inspect(d.node, func(n ast.Node) bool {
		if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.AND {
			if id, ok := u.X.(*ast.Ident); ok && made[id.Name] {
				replace(u, id.Name)
			}
		}
		return true
	})
	return edits
}

// constructor is the call that makes a value of an exchanged type; "" for other types.
func (s *suite) constructor(f *file, t ast.Expr) string {
	if t == nil {
		return ""
	}
	qualifier, name, ok := strings.Cut(f.text(t), ".")
	if !ok {
		qualifier, name = "", qualifier
	} else {
		qualifier += "."
	}
	if !slices.Contains(s.exchanged, name) {
		return ""
	}
	return qualifier + "New" + name + "()"
}
