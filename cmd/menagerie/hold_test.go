//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAHoldOutlivesItsCommandUntilItIsGivenUp(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	first := run(t, "hold", "/m", "--owner", "release-42", "--note", "see 1234", "--servers", s.addr)
	first.succeeded()
	token, err := zksync.ParseToken(strings.TrimSpace(first.stdout.String()))
	require.NoError(t, err)

	other := run(t, "hold", "/m", "--owner", "release-43", "--try", "--servers", s.addr)
	require.Equal(t, exitNotObtained, other.wait())
	require.Regexp(t, `^menagerie: /m is not free: held by release-42 since .* \(see 1234\), no process of which has it open\n$`, other.stderr.String())

	again := run(t, "hold", "/m", "--owner", "release-42", "--servers", s.addr)
	again.succeeded()
	require.Equal(t, first.stdout.String(), again.stdout.String(), "it is the same hold")

	wrong := run(t, "unhold", "/m", "--owner", "release-43", "--servers", s.addr)
	require.Equal(t, exitRefused, wrong.wait())
	require.Contains(t, wrong.stderr.String(), "refused: held by release-42")
	run(t, "unhold", "/m", "--owner", "release-42", "--servers", s.addr).succeeded()
	nobody := run(t, "unhold", "/m", "--owner", "release-42", "--servers", s.addr)
	require.Equal(t, exitNoSuchPath, nobody.wait())
	require.Equal(t, "menagerie: nobody holds /m\n", nobody.stderr.String())

	next := run(t, "hold", "/m", "--owner", "release-43", "--servers", s.addr)
	next.succeeded()
	greater, err := zksync.ParseToken(strings.TrimSpace(next.stdout.String()))
	require.NoError(t, err)
	require.Positive(t, greater.Compare(token))
}

// Its caller needs the token. The owner holds, so the same command prints it later.
func TestATokenThatCannotBePrintedIsAFailure(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	hold := []string{"hold", "/m", "--owner", "a", "--servers", s.addr}
	startBy(func(c *exec.Cmd) error { c.Stdout = full; return c.Start() }, t, nil, hold...).failed(exitFailure, "cannot write the output")
	run(t, hold...).succeeded()
}

func TestAHoldWithACommandEndsWhenThatSucceeds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	hold := func(script string) *program {
		return run(t, "hold", "/m", "--owner", "a", "--servers", s.addr, "--", "sh", "-c", script)
	}
	failed := hold(`echo "$MENAGERIE_PATH $MENAGERIE_TOKEN"; exit 7`)
	require.Equal(t, 7, failed.wait())
	require.Equal(t, "menagerie: /m is still held by a: run the command again, or menagerie unhold /m --owner a\n", failed.stderr.String())
	succeeds := hold(`echo "$MENAGERIE_PATH $MENAGERIE_TOKEN"`)
	succeeds.succeeded()
	require.Equal(t, failed.stdout.String(), succeeds.stdout.String(), "it went on with the same hold")
	require.Equal(t, exitNoSuchPath, run(t, "unhold", "/m", "--owner", "a", "--servers", s.addr).wait())
}

func TestABrokenHoldEndsItsCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := start(t, "hold", "/m", "--owner", "a", "--servers", s.addr, "--", "sh", "-c", "echo runs; sleep 60")
	require.Eventually(t, func() bool { return strings.Contains(p.stdout.String(), "runs") }, patience, pause)
	open := run(t, "unhold", "/m", "--owner", "a", "--servers", s.addr)
	require.Equal(t, exitRefused, open.wait())
	require.Contains(t, open.stderr.String(), "a process of which has it open")
	stale := run(t, "unhold", "/m", "--break", "no reason", "--token", "0000000000000001-00000000", "--servers", s.addr)
	require.Equal(t, exitRefused, stale.wait())
	require.Contains(t, stale.stderr.String(), "does not last any more: held by a")
	run(t, "unhold", "/m", "--break", "it was cancelled", "--servers", s.addr).succeeded()
	require.Equal(t, exitLost, p.wait())
	require.Contains(t, p.stderr.String(), "it was cancelled")
}

func TestWrongUsesOfHoldAreTold(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"--owner is missing":                 {"hold", "/m"},
		"PATH is missing":                    {"hold", "--owner", "a"},
		"exclude each other":                 {"hold", "/m", "--owner", "a", "--try", "--wait", "1s"},
		"give one of --owner":                {"unhold", "/m"},
		"--token belongs to --break":         {"unhold", "/m", "--owner", "a", "--token", "x"},
		"is no token, want what hold has":    {"unhold", "/m", "--break", "why", "--token", "x"},
		`does not start with a slash, want`:  {"unhold", "m", "--owner", "a"},
		"only PATH may stand in front of --": {"hold", "/m", "x", "--owner", "a", "--", "true"},
	} {
		p := run(t, args...)
		require.Equal(t, exitUsage, p.wait(), args)
		require.Contains(t, p.stderr.String(), text)
	}
}
