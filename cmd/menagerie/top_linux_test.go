package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/stretchr/testify/require"
)

// screen is a terminal on which a shell runs top, says how it ended, and what the terminal is like then.
type screen struct {
	*program
	keyboard      *os.File
	width, height int
}

// topOn starts top in a shell. The environment is that of a terminal with colours.
func topOn(t *testing.T, env string, args ...string) *screen {
	t.Helper()
	s := &screen{width: 200, height: 24}
	script := fmt.Sprintf(`stty rows 24 cols 200; export TERM=xterm-256color %s; set -m
%s top %s
while code=$?; test $code = 148; do echo stopped; read x; fg > /dev/null; done
echo "end $code"; stty -a | tr ' ' '\n' | grep -x -e '-*echo;*' -e '-*icanon;*'; echo over`, env, binary, strings.Join(args, " "))
	s.program, s.keyboard = onTerminal(t, "sh", "-c", script)
	return s
}

// emulator is a terminal that has got all output so far.
func (s *screen) emulator() *vt.Emulator {
	e := vt.NewEmulator(s.width, s.height)
	answered := make(chan struct{})
	go func() { defer close(answered); _, _ = io.Copy(io.Discard, e) }()
	_, _ = e.WriteString(s.stdout.String())
	_ = e.InputPipe().(io.Closer).Close() // Close itself races with Read
	<-answered
	return e
}

// shows waits until all texts are on the screen.
func (s *screen) shows(texts ...string) {
	s.t.Helper()
	var shown string
	require.Eventually(s.t, func() bool {
		shown = s.emulator().String()
		for _, text := range texts {
			if !regexp.MustCompile(text).MatchString(shown) {
				return false
			}
		}
		return true
	}, patience, 20*pause, "%q\n%s", texts, lazy{&s.stdout})
}

func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := s.keyboard.WriteString(keys)
	require.NoError(s.t, err)
}

// ends waits for the end, and checks that the terminal is as it was.
func (s *screen) ends(code int) {
	s.t.Helper()
	s.prints("over")
	require.Zero(s.t, s.wait())
	e := s.emulator()
	require.False(s.t, e.IsAltScreen())
	require.False(s.t, e.CursorHidden())
	require.Contains(s.t, e.String(), fmt.Sprintf("end %d", code))
	require.Regexp(s.t, `(?m)^icanon\s+echo\s+over`, e.String())
}

// crowd is a lock that is held and waited for, and one that is held.
func crowd(t *testing.T) *server {
	t.Helper()
	s := startServer(t)
	holder(t, s, "/locks/nightly")
	start(t, "lock", "/locks/nightly", "--servers", s.addr, "--", "true")
	s.queued(t, "/locks/nightly", 2)
	holder(t, s, "/other")
	return s
}

func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	p := topOn(t, "", "--servers", s.addr)
	p.shows("live", "/other", "all is well") // which is known when the servers were looked at
	require.Equal(t, strings.TrimSpace(`
menagerie top /, by waiters live
all is well: 1 of 1 server, 2 locks held, 1 waits

 PATH KIND HOLDER HELD USUAL X WAIT LONGEST GRANTS/S
> /locks/nightly lock sh@HOST:N D - - 1 D -
 /other lock sh@HOST:N D - - 0 - -

/locks/nightly: lock, held by HOST pid N for D; 1 waits
POS STATE FOR WHO BEHIND SINCE TOKEN SESSION
 0 held D sh@HOST:N - TIME TOKEN SESSION
 1 waiting D true@HOST:N sh@HOST:N TIME TOKEN SESSION












q quit ? help s sort r reverse / filter p pause enter below backspace above`), steady(t, p.emulator().String()))
	p.press("j")
	p.shows(`> +/other .*`, `/other: lock`)
	p.press("sr")
	p.shows(`by held reversed`, `> +/other`)
	p.press("/NIGHT\r")
	p.shows(`> +/locks/nightly`, `with "NIGHT"`)
	require.NotContains(t, p.emulator().String(), "/other")
	p.press("\r")
	p.shows(`menagerie top /locks,`)
	p.press("\x1b")
	p.shows(`top /locks, by held reversed  +live`)
	p.press("\x7f")
	p.shows(`menagerie top /,`, `/other`)
	start(t, "lock", "/other", "--servers", s.addr, "--", "true")
	p.shows(`/other .* 1 +[\d.]+m?s`)
	p.press("?")
	p.shows("any key ends it")
	p.press("xq")
	p.ends(0)
}

func TestTopResized(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	p := topOn(t, "", "--servers", s.addr)
	p.shows("GRANTS/S", "/other")
	p.width, p.height = 60, 10
	size := [2]int32{10 | 60<<16}
	control(t, p.keyboard, syscall.TIOCSWINSZ, &size[0])
	require.Eventually(t, func() bool { return !strings.Contains(p.emulator().String(), "GRANTS/S") }, patience, pause)
	p.shows(`(?m)PATH +HOLDER +HELD`, `> +/locks/nightly`)
	p.press("q")
	p.ends(0)
}

func TestSignalsEndTopAndRestoreTheTerminal(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	p := topOn(t, "", "--servers", s.addr)
	p.shows("live")
	p.press("\x03")
	p.ends(130)

	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		p = topOn(t, "", "--servers", s.addr)
		p.shows("live")
		require.NoError(t, syscall.Kill(-foreground(t, p.keyboard), sig))
		p.ends(code)
	}
}

// foreground is the process group that has the terminal.
func foreground(t *testing.T, keyboard *os.File) int {
	t.Helper()
	var group int32
	control(t, keyboard, syscall.TIOCGPGRP, &group)
	return int(group)
}

func TestTopIsStoppedAndResumed(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	p := topOn(t, "", "--servers", s.addr)
	p.shows("live")
	p.press("\x1a")
	p.shows("stopped")
	require.False(t, p.emulator().IsAltScreen())
	p.press("\n")
	p.shows("menagerie top /, by waiters +live", "> +/locks/nightly")
	p.press("q")
	p.ends(0)
}

func TestTopSaysThatTheServersDoNotAnswer(t *testing.T) {
	t.Parallel()
	s := crowd(t)
	p := topOn(t, "NO_COLOR=1", "-v", "--servers", s.addr)
	p.shows("live", "/other")
	s.Stop()
	p.shows(`as of [4-9] s ago; no connection to the servers`, `> +/locks/nightly`, "decide nothing by this frame", "(connection lost|cannot connect to .*): ")
	require.NotRegexp(t, `\x1b\[[0-9;]*3[0-9]m`, p.stdout.String(), "no colours")
	require.Regexp(t, `\x1b\[7mas of`, p.emulator().Render())
	s.Restart()
	p.shows("by waiters +live")
	thaw := s.Freeze()
	p.shows(`as of [3-9] s ago; the servers do not answer`)
	thaw()
	p.shows("by waiters +live")
	p.press("q")
	p.ends(0)
}

func TestTopShowsAFrameBeforeItIsConnected(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	p := topOn(t, "", "/locks", "--servers", addr, "--connect-timeout", "3s")
	p.shows("menagerie top /locks", "reading /locks ...", "cannot connect to "+addr+": connection refused")
	p.ends(1)
	require.Contains(t, p.emulator().String(), "menagerie: cannot reach "+addr+" within 3s")

	p = topOn(t, "", "--servers", addr, "--connect-timeout", "10m")
	p.shows("reading / ...")
	p.press("q")
	p.ends(0)
}
