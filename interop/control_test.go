package interop

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// snippet returns the program in docs/control.md of a language.
func snippet(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/control.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(text), "\n```"+language+"\n")
	require.True(t, ok, language)
	code, _, ok = strings.Cut(code, "\n```\n")
	require.True(t, ok)
	return code + "\n"
}

// controlled starts menagerie serve --control, and returns its two addresses.
func controlled(t *testing.T) (servers, control string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "menagerie")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/menagerie").CombinedOutput()
	require.NoError(t, err, "%s", out)
	serve := exec.CommandContext(t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0")
	stdout, err := serve.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait() // its end was not its own
	})
	_, err = fmt.Fscanf(stdout, "listening on %s\ncontrol on %s\n", &servers, &control)
	require.NoError(t, err)
	return servers, control
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(body)
}

func TestTheProgramsThatControlOurServerWorkAsTheyAreDocumented(t *testing.T) {
	t.Parallel()
	peers(t)
	servers, control := controlled(t)
	for _, p := range []struct {
		language, file string
		argv           []string
	}{
		{"python", "faults.py", []string{"/usr/bin/python3", "-B"}},
		{"java", "Faults.java", []string{"java", "-cp", jars, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"}},
	} {
		t.Run(p.language, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), p.file)
			require.NoError(t, os.WriteFile(file, []byte(snippet(t, p.language)), 0o600))
			before := fetch(t, control+"/requests")
			cmd := exec.CommandContext(t.Context(), p.argv[0], append(p.argv[1:], file, servers, control)...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			log := strings.TrimPrefix(fetch(t, control+"/requests"), strings.TrimSuffix(before, "]\n"))
			require.Equal(t, 1, strings.Count(log, `"fate":"reply lost"`), log)
			require.Equal(t, 1, strings.Count(log, `"fate":`), log)
			require.Contains(t, fetch(t, control+"/leftovers"), `"faults":[]`)
		})
	}
}
