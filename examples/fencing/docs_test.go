package fencing

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code of docs/fencing.md is the code of this package.
func TestTheCodeOfThePageIsTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/fencing.md")
	require.NoError(t, err)
	var sources strings.Builder
	names, _ := filepath.Glob("*.*")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		sources.Write(text)
	}
	blocks := regexp.MustCompile("(?ms)^```(?:go|sql|sh)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 10)
	for _, b := range blocks {
		require.Contains(t, sources.String(), strings.TrimRight(b[1], "\n"))
	}
}
