package docs

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the page lists has the signatures of the code, and nothing is left out.
func TestTheSignaturesOfZktestAreThoseOfTheCode(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^func .*$`).FindAllString(read(t, "zktest/signatures.md"), -1)
	for i, line := range listed {
		line, _, _ = strings.Cut(line, " //")
		listed[i] = strings.TrimSpace(line)
	}
	require.ElementsMatch(t, signatures(t, "../zktest"), listed)
}

// signatures returns the exported functions and methods of a package as they are declared, without those that every type may have.
func signatures(t *testing.T, dir string) (all []string) {
	set := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob(dir + "/*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(set, files, dir)
	require.NoError(t, err)
	funcs := d.Funcs
	for _, typ := range d.Types {
		funcs = slices.Concat(funcs, typ.Funcs, typ.Methods)
	}
	for _, f := range funcs {
		if f.Name == "String" {
			continue
		}
		var b bytes.Buffer
		require.NoError(t, printer.Fprint(&b, set, &ast.FuncDecl{Recv: f.Decl.Recv, Name: f.Decl.Name, Type: f.Decl.Type}))
		all = append(all, b.String())
	}
	return all
}
