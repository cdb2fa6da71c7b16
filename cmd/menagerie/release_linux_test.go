package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// asked starts a release of the holder of /a on a terminal, and returns when it asks.
func asked(t *testing.T, s *server) (*program, *os.File) {
	t.Helper()
	p, keyboard := onTerminal(t, binary, "release", "/a", "--holder", "--reason", "it hangs", "--servers", s.addr)
	p.prints("Remove it? [y/N] ")
	require.Contains(t, p.stdout.String(), "/a is held by ")
	return p, keyboard
}

func TestOnATerminalReleaseAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed string
		code  int
		says  string
	}{
		"y":              {"y\n", 0, "\nremoved "},
		"yes":            {"Yes\n", 0, "\nremoved "},
		"no":             {"n\n", exitRefused, "nothing was removed"},
		"an empty line":  {"\n", exitRefused, "nothing was removed"},
		"something else": {"yess\n", exitRefused, "nothing was removed"},
		"the end":        {"\x04", exitRefused, "nothing was removed"},
		"y and the end":  {"y\x04\x04", exitRefused, "nothing was removed"},
		"Ctrl-C":         {"\x03", 130, "interrupted by SIGINT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			h := holder(t, s, "/a")
			p, keyboard := asked(t, s)
			_, err := keyboard.WriteString(c.typed)
			require.NoError(t, err)
			require.Equal(t, c.code, p.wait(), p.stdout.String())
			p.prints(c.says)
			if c.code == 0 {
				h.failed(exitLost, "removed")
			} else {
				require.Equal(t, 1, s.ChildCount("/a"))
			}
		})
	}
}

// What was shown has left while the question stood: the answer is not for the next one.
func TestReleaseRemovesOnlyWhatItHasShown(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	next := start(t, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", "echo holding; exec sleep 600")
	s.queued(t, "/a", 2)
	p, keyboard := asked(t, s)
	s.Delete(contenders(t, s.addr, "/a")[0].Node)
	next.prints("holding")
	_, err := keyboard.WriteString("y\n")
	require.NoError(t, err)
	require.Equal(t, exitRefused, p.wait())
	p.prints("it is gone; nothing was removed")
	require.Equal(t, 1, s.ChildCount("/a"))
}

func TestReleaseAsksNothingWithYes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	p, _ := onTerminal(t, binary, "release", "/a", "--holder", "--yes", "--servers", s.addr)
	require.Zero(t, p.wait())
	require.NotContains(t, p.stdout.String(), "[y/N]")
}
