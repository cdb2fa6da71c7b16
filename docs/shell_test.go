package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	target   = regexp.MustCompile(`(?m)^([a-z-]+):`)
	makeCall = regexp.MustCompile(`(?m)^(?:\w+=\S+ )*make((?: [a-z-]+)+)`)
	goCall   = regexp.MustCompile(`(?m)\bgo (?:run|test|build|vet) [^\n|&;#]*`)
	folder   = regexp.MustCompile(` (\.\.?/[\w./-]*)`)
)

// Most blocks of a shell cannot run in a test: they install something, need real servers, or last for long. All are at least
// sound, and name targets and folders that exist. transcripts_test.go runs those that show what is printed.
func TestEveryShellBlockIsSound(t *testing.T) {
	makefile := read(t, "../Makefile")
	targets := make(map[string]bool)
	for _, m := range target.FindAllStringSubmatch(makefile, -1) {
		targets[m[1]] = true
	}
	seen := 0
	for _, b := range blocks(t) {
		for _, c := range b.commands() {
			seen++
			check := exec.Command("bash", "-n")
			check.Stdin = strings.NewReader(c.text)
			out, err := check.CombinedOutput()
			assert.NoError(t, err, "%s:%d: %s", b.page, b.line, out)
		}
	}
	require.Greater(t, seen, 60)
	for page, code := range codeOfPages(t) {
		for _, line := range code {
			line = strings.TrimPrefix(line, "$ ")
			for _, m := range makeCall.FindAllStringSubmatch(line, -1) {
				for name := range strings.FieldsSeq(m[1]) {
					assert.True(t, targets[name], "%s: %s: the Makefile has no %s", page, line, name)
				}
			}
			for _, call := range goCall.FindAllString(line, -1) {
				for _, m := range folder.FindAllStringSubmatch(call, -1) {
					_, err := os.Stat(filepath.Join("..", strings.TrimSuffix(m[1], "...")))
					assert.NoError(t, err, "%s: %s", page, line)
				}
			}
		}
	}
}
