package docs

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What CONTRIBUTING.md says of English, as far as a program can find it.
var unwanted = regexp.MustCompile(`\b([Bb]y hand|anew|dear|dearer)(\W|$)|(^|[.:;] )Who [a-z]`)

// longest is how many words a doc comment has at most, usual how many nine of ten have at most, and all how many those of the
// public packages have together.
const longest, usual, all = 120, 45, 18_090

func TestDocCommentsAreShort(t *testing.T) {
	var lengths []int
	total := 0
	for _, dir := range public(t) {
		pkg := documented(t, dir)
		total += words(pkg.Doc)
		each := func(name, text string) {
			n := words(text)
			lengths, total = append(lengths, n), total+n
			assert.LessOrEqual(t, n, longest, "%s.%s has %d words", dir, name, n)
		}
		for _, f := range pkg.Funcs {
			each(f.Name, f.Doc)
		}
		for _, typ := range pkg.Types {
			each(typ.Name, typ.Doc)
			for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
				each(typ.Name+"."+f.Name, f.Doc)
			}
			for _, v := range slices.Concat(typ.Consts, typ.Vars) {
				total += words(v.Doc)
			}
		}
		for _, v := range slices.Concat(pkg.Consts, pkg.Vars) {
			total += words(v.Doc)
		}
	}
	slices.Sort(lengths)
	t.Logf("%d doc comments: p50 %d, p90 %d, most %d words; %d words in all", len(lengths), lengths[len(lengths)/2], lengths[len(lengths)*9/10], lengths[len(lengths)-1], total)
	assert.LessOrEqual(t, lengths[len(lengths)*9/10], usual, "words of a doc comment, p90")
	assert.LessOrEqual(t, total, all, "words of doc comments")
}

func words(text string) int { return len(strings.Fields(text)) }

// public are the folders of the packages that users import.
func public(t *testing.T) (dirs []string) {
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() && (strings.HasPrefix(e.Name(), "zk") || e.Name() == "reentrant") {
			dirs = append(dirs, filepath.Join("..", e.Name()))
		}
	}
	require.Greater(t, len(dirs), 15)
	return dirs
}

func documented(t *testing.T, dir string) *doc.Package {
	var files []*ast.File
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	pkg, err := doc.NewFromFiles(set, files, dir)
	require.NoError(t, err)
	return pkg
}

func TestEnglishIsPlain(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.go", "*.md", "Makefile")
	list.Dir = ".."
	out, err := list.Output()
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "docs/findings") || name == "docs/english_test.go" || name == "CONTRIBUTING.md" {
			continue // history, and what speaks of the words
		}
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasSuffix(name, ".go") {
				_, comment, found := strings.Cut(line, "//")
				if !found {
					continue
				}
				line = strings.TrimSpace(comment)
			}
			if strings.HasPrefix(line, "Who is an owner") {
				continue // the comment of func Who
			}
			assert.NotRegexp(t, unwanted, strings.ReplaceAll(line, "by hand-over", ""), "%s:%d", name, i+1)
		}
	}
}
