package storm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of docs/guarantees/faults.md has a row for each type and each option of the library, each kind of servers and each fault. A row
// says where the storm uses it, or why not.
func TestTheTableOfWhatTheStormUsesIsWhole(t *testing.T) {
	rows, source := table(t), sources(t)
	for name, cell := range rows {
		require.NotEmpty(t, cell, "%s: an empty cell", name)
	}
	for _, name := range append(exported(t, "Session", "Mutex"), exported(t, "Option", "JobOption", "AssignOption")...) {
		cell, ok := rows[name]
		if !ok {
			t.Errorf("%s stands in no row of docs/guarantees/faults.md", name)
			continue
		}
		used := strings.Contains(source, name+"(") || strings.Contains(source, name+"[")
		require.Equal(t, used, !strings.HasPrefix(cell, "no: "), "%s: the storm uses it: %v, and the table says %q", name, used, cell)
	}
	for _, k := range kinds {
		require.Contains(t, rows, k.name)
	}
	for _, f := range faults {
		require.Contains(t, rows, f.name)
	}
}

func TestEveryRecipeMeetsEveryKindOfServers(t *testing.T) {
	met := map[[2]int]bool{}
	for seed := range uint64(usual) {
		r, k := draws(seed + 1)
		met[[2]int{r, k}] = true
	}
	require.Len(t, met, len(recipes)*len(kinds))
}

// table is the first column of the section's tables, and the second.
func table(t *testing.T) map[string]string {
	text, err := os.ReadFile("../../docs/guarantees/faults.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## What the storm uses\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) > 1 {
			for _, name := range strings.Split(cells[0], ",") {
				rows[strings.Trim(strings.TrimSpace(name), "`")] = strings.TrimSpace(cells[1])
			}
		}
	}
	return rows
}

// sources is the text of all files of the storm but this one.
func sources(t *testing.T) string {
	names, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if name != "table_test.go" {
			all.Write(text)
		}
	}
	return all.String()
}

// exported are the functions of the public packages that take the first of some types first, or return the others.
func exported(t *testing.T, types ...string) (names []string) {
	files, err := filepath.Glob("../../*/*.go")
	require.NoError(t, err)
	for _, name := range files {
		pkg := filepath.Base(filepath.Dir(name))
		if strings.HasSuffix(name, "_test.go") || pkg == "zktest" || pkg != "reentrant" && !strings.HasPrefix(pkg, "zk") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			if concerns(f.Type, types) {
				names = append(names, pkg+"."+f.Name.Name)
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

// concerns reports whether a function is given a session or a mutex, or returns an option.
func concerns(f *ast.FuncType, types []string) bool {
	fields := f.Params.List
	if strings.HasSuffix(types[0], "Option") {
		if f.Results == nil || len(f.Results.List) != 1 {
			return false
		}
		fields = f.Results.List
	}
	for _, p := range fields {
		for _, name := range types {
			if nameOf(p.Type) == name {
				return true
			}
		}
	}
	return false
}

// nameOf is the name of a type, without its package.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.Ellipsis:
		return nameOf(e.Elt)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}
