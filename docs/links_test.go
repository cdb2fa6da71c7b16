package docs

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	fenced     = regexp.MustCompile("(?ms)^```.*?^```$")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inComment  = regexp.MustCompile(`\bdocs/[\w/-]+\.md(?:#[\w-]+)?`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.md", "*.go")
	list.Dir = ".."
	out, err := list.Output()
	require.NoError(t, err)
	seen := 0
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for _, to := range elsewhereOn(name, string(text)) {
			u, err := url.Parse(to)
			assert.True(t, err == nil && u.Scheme == "https" && strings.Contains(u.Host, "."), "%s links to %s", name, to)
		}
		for _, to := range linksOf(name, string(text)) {
			seen++
			target, anchor, _ := strings.Cut(to, "#")
			if target == "" {
				target = name
			}
			_, err := os.Stat(filepath.Join("..", target))
			if assert.NoError(t, err, "%s links to %s", name, to) && anchor != "" {
				assert.True(t, anchors(t, filepath.Join("..", target))[anchor], "%s links to %s", name, to)
			}
		}
	}
	require.Greater(t, seen, 200)
}

// linksOf returns the links of a document, and the documents that a Go file names, from the root of the repository.
func linksOf(name, text string) (all []string) {
	if strings.HasSuffix(name, ".go") {
		return inComment.FindAllString(text, -1)
	}
	text = inlineCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), "")
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		switch {
		case strings.Contains(m[1], "://"):
		case strings.HasPrefix(m[1], "#"):
			all = append(all, m[1])
		default:
			all = append(all, filepath.Join(filepath.Dir(name), m[1]))
		}
	}
	return all
}

// elsewhereOn returns the links of a document to other sites. Tests talk to this machine only, so nothing is asked there.
func elsewhereOn(name, text string) (all []string) {
	if strings.HasSuffix(name, ".go") {
		return nil
	}
	for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), -1) {
		if strings.Contains(m[1], "://") {
			all = append(all, m[1])
		}
	}
	return all
}

// anchors are those that GitHub gives to the headings of a document.
func anchors(t *testing.T, file string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, file), ""), -1) {
		anchor := slug(m[1])
		for i := 1; all[anchor]; i++ {
			anchor = slug(m[1]) + "-" + strconv.Itoa(i)
		}
		all[anchor] = true
	}
	return all
}

// slug is the anchor of a heading.
func slug(heading string) string {
	return strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
