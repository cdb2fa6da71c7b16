package docs

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/go-menagerie/menagerie/"

var (
	room    = regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]*) \|`)
	quoted  = regexp.MustCompile("`([a-z/]+)`")
	atTests = []string{"recipes_test", "interop", "docs", "examples", "zktest/internal/conformance", "internal/testing/ensemble", "internal/testing/gosuite", "internal/testing/mutants", "internal/testing/proving", "zktest/internal/speed"}
)

// Leaves of a package that stands in the table are in its row; which may import which, the compiler and their parent's
// comment say.
func TestArrowsBetweenPackagesPointDown(t *testing.T) {
	rows := make(map[string]int)
	for _, m := range room.FindAllStringSubmatch(read(t, "architecture.md"), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		for _, p := range quoted.FindAllStringSubmatch(m[2], -1) {
			rows[p[1]] = n
		}
	}
	require.NotEmpty(t, rows)
	seen := 0
	for pkg, imported := range imports(t) {
		from, ok := rowOf(rows, pkg)
		if !ok {
			assert.True(t, within(pkg, atTests), "%s stands in no row of architecture.md", pkg)
			continue
		}
		seen++
		for _, i := range imported {
			to, ok := rowOf(rows, i)
			if assert.True(t, ok, "%s imports %s, which is for tests", pkg, i) && !sameRoom(rows, pkg, i) {
				assert.Less(t, from, to, "%s imports %s: up, or sideways", pkg, i)
			}
		}
	}
	require.Greater(t, seen, 20)
}

// imports are those of every package of the module within the module, without tests.
func imports(t *testing.T) map[string][]string {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "work")
	list.Dir = ".."
	out, err := list.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, list.Start())
	all := make(map[string][]string)
	for d := json.NewDecoder(out); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		all[name] = nil
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok {
				all[name] = append(all[name], ours)
			}
		}
	}
	require.NoError(t, list.Wait())
	return all
}

// rowOf is the row of a package, or of the one that it is a leaf of.
func rowOf(rows map[string]int, pkg string) (int, bool) {
	if n, ok := rows[pkg]; ok {
		return n, true
	}
	parent, ok := parentIn(rows, pkg)
	return rows[parent], ok
}

func parentIn(rows map[string]int, pkg string) (string, bool) {
	for p := range rows {
		if strings.HasPrefix(pkg, p+"/") && !within(pkg, atTests) {
			return p, true
		}
	}
	return "", false
}

// sameRoom reports whether one of two packages is a leaf of the other, or both of a third.
func sameRoom(rows map[string]int, a, b string) bool {
	root := func(pkg string) string {
		if p, ok := parentIn(rows, pkg); ok {
			return p
		}
		return pkg
	}
	return root(a) == root(b)
}

func within(pkg string, dirs []string) bool {
	for _, d := range dirs {
		if pkg == d || strings.HasPrefix(pkg, d+"/") {
			return true
		}
	}
	return false
}
