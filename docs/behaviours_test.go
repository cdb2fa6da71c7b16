// Package docs holds tests only: what the documents say of the tests is so.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// last is the last number of a behaviour; no behaviour has the number unused.
const last, unused = 223, 159

var (
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz|Benchmark)\w*)\(`)
	named    = regexp.MustCompile("`((?:Test|Example|Fuzz|Benchmark)[A-Z_]\\w*)(?:/[^`]*)?`(\\.\\.\\.)?")
	numbered = regexp.MustCompile(`^TestAcceptance(\d{3})(?:(And|To)(\d{3}))?`)
	row      = regexp.MustCompile(`^\| (\d+) \|`)
)

func TestEveryBehaviourHasATestAndEveryTestOfOneIsListed(t *testing.T) {
	listed := make(map[int][]string)
	next := 0
	for line := range strings.Lines(read(t, "behaviours.md") + read(t, "behaviours/faults.md") + read(t, "behaviours/everyday.md")) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n := number(t, m[1])
		require.NotContains(t, listed, n, "behaviour %d has two rows", n)
		require.Greater(t, n, next, "the rows are in the order of their numbers")
		next = n
		listed[n] = names(line)
		givenUp := strings.Contains(line, "| Given up") // those have no tests
		assert.Equal(t, givenUp, len(listed[n]) == 0, "behaviour %d has tests, or should have", n)
	}
	for n := 1; n <= last; n++ {
		if n != unused {
			assert.Contains(t, listed, n, "behaviour %d has no row", n)
		}
	}
	require.Len(t, listed, last-1)
	for name := range tests(t) {
		for _, n := range numbers(t, name) {
			assert.Contains(t, listed[n], name, "behaviour %d does not list it", n)
		}
	}
}

func TestTheDocumentsNameOnlyTestsThatExist(t *testing.T) {
	exist := tests(t)
	for _, file := range append(pages(t), "../README.md", "../CONTRIBUTING.md") {
		for i, line := range strings.Split(read(t, file), "\n") {
			for _, name := range names(line) {
				assert.True(t, exist[name], "%s:%d: there is no %s", file, i+1, name)
			}
		}
	}
}

// names returns the tests that a line names in code.
func names(line string) (out []string) {
	for _, m := range named.FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// numbers returns those of the behaviours that a test is of.
func numbers(t *testing.T, name string) (out []int) {
	m := numbered.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	first := number(t, m[1])
	switch m[2] {
	case "And":
		return []int{first, number(t, m[3])}
	case "To":
		for n := first; n <= number(t, m[3]); n++ {
			out = append(out, n)
		}
		return out
	}
	return []int{first}
}

// tests returns the names of all tests, examples, benchmarks and fuzz tests of the repository.
func tests(t *testing.T) map[string]bool {
	out := make(map[string]bool)
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(read(t, path), -1) {
			out[m[1]] = true
		}
		return nil
	}))
	return out
}

func read(t *testing.T, file string) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
