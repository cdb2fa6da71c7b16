package docs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A page is read, often during an outage, so it has at most mostLines lines. The index is read first.
const mostLines, indexLines = 200, 60

func TestEveryPageIsShort(t *testing.T) {
	for _, page := range append(pages(t), "../README.md") {
		most := mostLines
		if page == "README.md" {
			most = indexLines
		}
		assert.LessOrEqual(t, strings.Count(read(t, page), "\n"), most, "lines of %s", page)
	}
}

func TestTheIndexLinksEveryPage(t *testing.T) {
	linked := make(map[string]bool)
	for _, to := range linksOf("docs/README.md", read(t, "README.md")) {
		to, _, _ = strings.Cut(to, "#")
		linked[to] = true
	}
	for _, page := range pages(t) {
		if page != "README.md" {
			assert.True(t, linked["docs/"+page], "docs/README.md links no %s", page)
		}
	}
}

// pages are all pages of this folder and the folders below.
func pages(t *testing.T) (all []string) {
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	}))
	require.Greater(t, len(all), 40)
	return all
}
