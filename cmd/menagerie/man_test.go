//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages returns the pages that man writes, by their names.
func pages(t *testing.T, dir string, env ...string) map[string]string {
	t.Helper()
	p := startWith(t, env, "man", dir)
	p.succeeded()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Equal(t, "wrote "+strconv.Itoa(len(files))+" pages to "+dir+"\n", p.stdout.String())
	all := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		all[f.Name()] = string(data)
	}
	return all
}

func TestManWritesAPageOfEachCommand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "man1")
	all := pages(t, dir)
	for name, text := range pages(t, dir, serversEnv+"=zk1:2181", "HOME=/none") { // they are replaced
		require.Equal(t, all[name], text, name)
	}
	unroff := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\(dq`, `"`, `\(ga`, "`", `\(ti`, "~", `\(ha`, "^", `\e`, `\`, "\n\\&", "\n")
	for _, command := range append([]string{"latch wait", "gate close", "queue put", "completion bash", "hold", "reset"}, commands...) {
		text, ok := all["menagerie-"+strings.ReplaceAll(command, " ", "-")+".1"]
		require.True(t, ok, command)
		require.Contains(t, text, "\n.SH NAME\nmenagerie\\-")
		require.Contains(t, text, "\n.SH SYNOPSIS\n")
		p := run(t, append(strings.Fields(command), "--help")...)
		p.succeeded()
		help, plain := p.stdout.String(), unroff.Replace(text)
		require.Equal(t, strings.Contains(help, "\nExit codes"), strings.Contains(text, "\n.SH EXIT STATUS\n"), command)
		require.Equal(t, strings.Contains(help, "\nExamples:\n"), strings.Contains(text, "\n.SH EXAMPLES\n"), command)
		require.Equal(t, strings.Contains(help, "      --servers ") && command != "completion bash", strings.Contains(text, ".SH OPTIONS OF THE CONNECTION\n"), command)
		before, _, _ := strings.Cut(help, "\nFlags:\n")
		before, _, _ = strings.Cut(before, "\nAvailable Commands:\n") // the page names them at its end
		for line := range strings.Lines(before) {                     // all but the headings of help
			if line = strings.TrimSpace(line); line != "Usage:" && line != "Examples:" && !strings.HasSuffix(line, "[command]") {
				require.Contains(t, plain, line, command)
			}
		}
		require.Contains(t, text, "\n.SH OPTIONS\n", command)
	}
	require.NotContains(t, all, "menagerie-help.1")
	require.NotContains(t, all, "menagerie-"+workerName+".1")
}

func TestManShowsThePagesWithoutWarnings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := pages(t, dir)
	viewer, err := exec.LookPath("man")
	for name, text := range all {
		for line := range strings.Lines(text) { // the requests that we use, and no other line that would be one
			require.Regexp(t, `^([^.'\n]|\.(TH|BR) |\.SH [A-Z ]+\n$|\.(PP|TP|nf|fi)\n$)`, line, name)
		}
		require.Equal(t, strings.Count(text, "\n.nf\n"), strings.Count(text, "\n.fi\n"), name)
		if err != nil { // there is no man here
			continue
		}
		cmd := exec.Command(viewer, "--warnings", "-l", filepath.Join(dir, name))
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=150", "MANPAGER=cat")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Run(), stderr.String())
		require.Empty(t, stderr.String(), name)
		require.Contains(t, stdout.String(), "NAME\n")
		if name == "menagerie-lock.1" {
			require.Contains(t, stdout.String(), `--wait 5m -- sh -c 'echo "token $MENAGERIE_TOKEN"'`)
			require.Contains(t, stdout.String(), "\n          75  not free (--try) or not obtained in time (--wait); CMD did not run\n")
		}
	}
}

func TestManRefusesWhatIsNoDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	run(t, "man", file).failed(exitUsage, file+" is a file, want a directory")
	run(t, "man", filepath.Join(file, "below")).failed(exitFailure, "cannot make the directory")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(data))
	run(t, "man").failed(exitUsage, "DIR is missing")
	run(t, "man", "a", "b").failed(exitUsage, `found "b" too`)
}

func TestCompletionKnowsTheCommandsBelowACommand(t *testing.T) {
	t.Parallel()
	for command, names := range map[string][]string{"gate": {"close", "open", "wait"}, "latch": {"down", "wait"}} {
		p := run(t, "__complete", command, "")
		require.Equal(t, 0, p.wait())
		for _, name := range names {
			require.Regexp(t, `(?m)^`+name+`\t`, p.stdout.String())
		}
	}
}
