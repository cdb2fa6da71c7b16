//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// pasted are the examples of a command's help, as somebody pastes them.
func pasted(t *testing.T, command string) []string {
	t.Helper()
	p := run(t, command, "--help")
	p.succeeded()
	_, examples, ok := strings.Cut(p.stdout.String(), "\nExamples:\n")
	require.True(t, ok)
	examples, _, _ = strings.Cut(examples, "\n\n")
	return strings.Split(strings.TrimSpace(examples), "\n")
}

func TestTheExamplesWorkWhenTheyArePasted(t *testing.T) {
	t.Parallel()
	path := filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			dir := t.TempDir()
			here := strings.NewReplacer(defaultServers, s.addr, "--duration 1s", "--duration 50ms") // what is measured is of no interest
			for _, line := range pasted(t, command) {
				if command == "serve" || command == "cron" || command == "ui" || strings.Contains(line, "--watch") { // they do not end
					continue
				}
				cmd := exec.Command("sh", "-c", here.Replace(line))
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+path, serversEnv+"="+s.addr)
				cmd.WaitDelay = patience
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s\n%s", line, out)
			}
		})
	}
}

func TestHelpSaysNothingThatIsNotSo(t *testing.T) {
	t.Parallel()
	below := []string{"latch down", "latch wait", "gate close", "gate open", "gate wait", "queue put", "queue take", "queue receive", "queue work", "queue dead", "queue redrive", "group join", "cron run-now", "hold", "unhold", "reset"}
	for _, command := range append(below, commands...) {
		p := run(t, append(strings.Fields(command), "--help")...)
		p.succeeded()
		out := p.stdout.String()
		require.NotContains(t, out, "(default 0s)")
		require.NotContains(t, out, "[flags]")
		require.NotRegexp(t, `(?m)^ +--[a-z-]+ string `, out, "what the value is")
		require.NotContains(t, out, "be reached for longer than the session timeout", "what is held is lost long before")
		for line := range strings.Lines(out) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 116, line)
		}
		for _, flag := range connectionFlags {
			if !slices.Contains(offline, command) {
				require.Contains(t, out, " --"+flag+" ")
				continue
			}
			require.NotContains(t, out, "  --"+flag+" ")
			value := map[string]string{"tls": "true", "existing-chroot": "true", "tls-insecure": "true", "timeout": "1s", "connect-timeout": "1s"}[flag]
			run(t, command, "--"+flag+"="+value).failed(exitUsage, "--"+flag+" has no meaning here")
		}
	}
}

// What is printed for --wait says when it ends, and the process keeps to it: a fraction of a second
// later, whatever the servers do. They fall silent before the connection, and while it waits.
func TestWaitEndsInTimeWhenTheServersFallSilent(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"lock": {"--", "true"}, "rlock": {"--", "true"}, "elect": {"--", "true"}, "once": {"--", "true"},
		"sem": {"--permits", "1", "--", "true"}, "barrier": {"--parties", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			idle := func() time.Duration { // how long it takes now to start the command and do nothing
				began := time.Now()
				run(t, "--help").succeeded()
				return time.Since(began)
			}
			lasts := func(wait time.Duration, freeze func()) {
				t.Helper()
				slow := idle()
				began := time.Now()
				p := start(t, append([]string{name, "/a", "--servers", s.addr, "--wait", wait.String()}, args...)...)
				freeze()
				p.failed(exitNotObtained, "gave up waiting for /a", wait.String())
				took := time.Since(began)
				require.GreaterOrEqual(t, took, wait)
				require.Less(t, took, wait+time.Second+5*max(slow, idle()), "not two seconds for the goodbye")
			}
			if name != "barrier" {
				alone := strings.TrimPrefix(name, "r") // readers would not wait for each other
				p := start(t, append([]string{alone, "/a", "--servers", s.addr}, append(args[:len(args)-1:len(args)-1], "sh", "-c", "echo holding; exec sleep 600")...)...)
				p.prints("holding")
			}
			var thaw func()
			lasts(3*time.Second, func() {
				require.Eventually(t, func() bool { return len(s.Sessions()) >= 2 || name == "barrier" && len(s.Sessions()) == 1 }, patience, pause)
				thaw = s.Freeze()
			})
			lasts(time.Second, func() {}) // it is frozen already
			thaw()
		})
	}
}

func TestWhoCouldNotWaitIsToldWhoHolds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/a")
	host, err := os.Hostname()
	require.NoError(t, err)
	by := "held by " + host + " pid " + strconv.Itoa(h.cmd.Process.Pid) + " for "
	run(t, "lock", "/a", "--try", "--servers", s.addr, "--", "true").failed(exitNotObtained, "/a is not free: "+by)
	run(t, "rlock", "/a", "--wait", "3s", "--servers", s.addr, "--", "true").failed(exitNotObtained, "after 3s: "+by)
	o := start(t, "once", "/o", "--servers", s.addr, "--", "sh", "-c", "echo running; exec sleep 600")
	o.prints("running")
	run(t, "once", "/o", "--try", "--servers", s.addr, "--", "true").failed(exitNotObtained, "/o: held by "+host+" pid "+strconv.Itoa(o.cmd.Process.Pid))
}
