package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each is tried without running its test: "make mutants" does that.
func TestEveryMutantStillAppliesAndNamesATest(t *testing.T) {
	all, err := read(".")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, m := range all {
		_, whole, broken, err := m.apply(filepath.Join("..", "..", ".."))
		require.NoError(t, err, m.name)
		require.NotEqual(t, whole, broken, m.name)
		found := false
		tests, err := filepath.Glob(filepath.Join("..", "..", "..", m.pkg, "*_test.go"))
		require.NoError(t, err)
		for _, f := range tests {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			found = found || strings.Contains(string(text), "\nfunc "+m.test+"(")
		}
		require.True(t, found, "%s: %s has no %s", m.name, m.pkg, m.test)
	}
}

func TestAMutantLivesThatNoTestKills(t *testing.T) {
	for _, c := range []struct{ name, test, patch, want string }{
		{"killed", "TestOne", "-const one = 1\n+const one = 2\n", ""},
		{"survives", "TestNothing", "-const one = 1\n+const one = 2\n", "passes although one is another"},
		{"does not compile", "TestOne", "-const one = 1\n+const one = 1 +\n", "compile"},
		{"does not apply", "TestOne", "-const one = 3\n+const one = 2\n", "apply"},
		{"no such test", "TestTwo", "-const one = 1\n+const one = 2\n", "has no TestTwo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{
				"go.mod":          "module one\n\ngo 1.25\n",
				"one.go":          "package one\n\nconst one = 1\n",
				"one_test.go":     "package one\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one != 1 {\n\t\tt.Fatal(one)\n\t}\n}\n\nfunc TestNothing(t *testing.T) {}\n",
				"mutants/m.patch": "What: one is another\nTest: . " + c.test + "\n\ndiff --git a/one.go b/one.go\n--- a/one.go\n+++ b/one.go\n@@ -1,3 +1,3 @@\n package one\n \n" + c.patch,
			} {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777))
				require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
			}
			err := run(root, "mutants", nil)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
