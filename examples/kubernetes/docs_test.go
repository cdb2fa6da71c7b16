package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code of docs/kubernetes.md is the code of the service.
func TestTheCodeOfThePageIsTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	source, err := os.ReadFile("service.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, 4)
	for _, b := range blocks {
		require.Contains(t, string(source), strings.TrimRight(b[1], "\n"))
	}
}
