//go:build unix

package main

import (
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var commands = []string{"demo", "serve", "lock", "rlock", "sem", "elect", "once", "cron", "barrier", "latch", "gate", "queue", "group", "ls", "top", "ui", "wait", "status", "deadlocks", "release", "bench", "version", "man"}

// offline are those that connect to no servers.
var offline = []string{"serve", "version", "man"}

func TestEveryCommandHasHelpWithExamples(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"help"}, {}} {
		p := run(t, args...)
		p.succeeded()
		for _, name := range commands {
			require.Contains(t, p.stdout.String(), "\n  "+name)
		}
		require.NotContains(t, p.stdout.String(), workerName)
	}
	for _, name := range commands {
		p := run(t, name, "--help")
		p.succeeded()
		require.Contains(t, p.stdout.String(), "Examples:\n  menagerie ")
		require.Equal(t, slices.Contains(offline, name), !strings.Contains(p.stdout.String(), "  --servers "), name)
	}
}

func TestVersionAndCompletionArePrinted(t *testing.T) {
	t.Parallel()
	p := run(t, "--version")
	p.succeeded()
	require.Regexp(t, `^menagerie version \S+`, p.stdout.String())
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		p := run(t, "completion", shell)
		p.succeeded()
		require.Contains(t, p.stdout.String(), "menagerie")
	}
}

func TestWrongCommandLinesEndWithTwoAndOneLine(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 100_000)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown command":              {[]string{"lokc"}, `unknown command "lokc", did you mean lock?`},
		"unknown command, far away":    {[]string{"xyzzy"}, `unknown command "xyzzy"`},
		"unknown command with --help":  {[]string{"lokc", "--help"}, `unknown command "lokc", did you mean lock?`},
		"unknown command with -h":      {[]string{"-h", "xyzzy", "/a"}, `unknown command "xyzzy"`},
		"unknown queue command's help": {[]string{"queue", "tkae", "--help"}, `unknown command "tkae", did you mean take?`},
		"help for an unknown command":  {[]string{"help", "lokc"}, `unknown command "lokc", did you mean lock?`},
		"completion of unknown shell":  {[]string{"completion", "tcsh"}, `cannot complete for "tcsh", want bash, fish, powershell or zsh`},
		"unknown flag":                 {[]string{"ls", "/a", "--nope"}, "unknown flag: --nope"},
		"flag without a value":         {[]string{"ls", "/a", "--servers"}, "flag needs an argument"},
		"timeout of zero":              {[]string{"ls", "/a", "--timeout", "0"}, "more than zero"},
		"timeout without a unit":       {[]string{"ls", "/a", "--timeout", "5"}, "want a duration such as"},
		"negative timeout":             {[]string{"ls", "/a", "--timeout", "-5s"}, "more than zero"},
		"timeout of a microsecond":     {[]string{"ls", "/a", "--timeout", "1us"}, "more than zero"},
		"timeout of a year":            {[]string{"ls", "/a", "--timeout", "8760h"}, "at most 24h"},
		"bad servers":                  {[]string{"ls", "/a", "--servers", "http://zk"}, "has a scheme"},
		"bad port":                     {[]string{"ls", "/a", "--servers", "zk:99999"}, "bad port"},
		"empty servers":                {[]string{"demo", "--servers", ""}, "--servers is empty"},
		"chroot twice":                 {[]string{"ls", "/a", "--servers", "zk1:2181/a,zk2:2181/a"}, "chroot once"},
		"ls with two paths":            {[]string{"ls", "/a", "/b"}, `found "/b" too`},
		"relative path":                {[]string{"ls", "a"}, "does not start with a slash"},
		"empty path":                   {[]string{"ls", ""}, "PATH is empty"},
		"root":                         {[]string{"lock", "/", "--", "true"}, "is the root"},
		"slash at the end":             {[]string{"ls", "/a/"}, "ends with a slash"},
		"double slash":                 {[]string{"ls", "/a//b"}, "empty or relative part"},
		"dots":                         {[]string{"ls", "/a/../b"}, "empty or relative part"},
		"control character":            {[]string{"ls", "/a\x01b"}, "control character"},
		"long relative path":           {[]string{"ls", long[1:]}, "does not start with a slash"},
		"lock without anything":        {[]string{"lock"}, "PATH and CMD are missing"},
		"lock without CMD":             {[]string{"lock", "/a"}, "CMD is missing"},
		"lock with -- but no CMD":      {[]string{"lock", "/a", "--"}, "CMD is missing"},
		"lock without PATH":            {[]string{"lock", "--", "true"}, "PATH is missing in front of --"},
		"lock with two paths":          {[]string{"lock", "/a", "/b", "--", "true"}, `found "/b" too`},
		"lock with a bad path":         {[]string{"lock", "a", "--", "true"}, "does not start with a slash"},
		"wait and try":                 {[]string{"lock", "/a", "--wait", "1s", "--try", "--", "true"}, "exclude each other"},
		"bad wait":                     {[]string{"lock", "/a", "--wait", "soon", "--", "true"}, "want a duration such as"},
		"wait of zero":                 {[]string{"lock", "/a", "--wait", "0s", "--", "true"}, "more than zero"},
		"negative grace":               {[]string{"lock", "/a", "--grace", "-1s", "--", "true"}, "zero or more"},
		"flag of CMD without --":       {[]string{"lock", "/a", "ls", "-l"}, "put -- in front of CMD"},
		"flag of ours behind CMD":      {[]string{"lock", "/a", "true", "--try"}, "put -- in front of CMD"},
		"flag with value behind CMD":   {[]string{"lock", "/a", "true", "--wait", "1s"}, "put -- in front of CMD"},
		"no workers":                   {[]string{"demo", "--workers", "0"}, "whole number above zero"},
		"negative rounds":              {[]string{"demo", "--rounds", "-1"}, "whole number above zero"},
		"half a worker":                {[]string{"demo", "--workers", "1.5"}, "whole number above zero"},
		"too many workers":             {[]string{"demo", "--workers", "100000"}, "at most 256 workers"},
		"demo with an argument":        {[]string{"demo", "x"}, `takes no arguments, found "x"`},
		"serve with servers":           {[]string{"serve", "--servers", "zk:2181"}, "--listen"},
		"serve on nonsense":            {[]string{"serve", "--listen", "nonsense"}, "want HOST:PORT"},
		"serve on a port out of range": {[]string{"serve", "--listen", "127.0.0.1:99999"}, "want HOST:PORT"},
		"serve with a bad tick":        {[]string{"serve", "--tick", "-1s"}, "more than zero"},
		"status with an argument":      {[]string{"status", "x"}, `takes no arguments, found "x"`},
		"status of bad servers":        {[]string{"status", "--servers", "zk:99999"}, "bad port"},
		"status with a relative path":  {[]string{"status", "--acl-check", "a"}, "does not start with a slash"},
		"status with an empty path":    {[]string{"status", "--acl-check", ""}, "PATH is empty"},
		"bench with no clients":        {[]string{"bench", "--clients", "0"}, "whole numbers from 1"},
		"bench with empty clients":     {[]string{"bench", "--clients", ""}, "whole numbers from 1"},
		"bench with bad duration":      {[]string{"bench", "--duration", "x"}, "want a duration such as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, c.args...)
			p.failed(exitUsage, c.says, "--help")
			require.Empty(t, p.stdout.String())
			require.Less(t, len(p.stderr.String()), 600)
		})
	}
}

func TestAnUnreachableServerIsTriedForTheTimeoutAndNamed(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	for _, args := range [][]string{
		{"ls", "/a"}, {"lock", "/a", "--", "true"}, {"lock", "--try", "/a", "--", "true"}, {"demo"}, {"bench"},
	} {
		p := run(t, append([]string{"--servers", addr, "--connect-timeout", "2s"}, args...)...)
		p.failed(exitFailure, addr, "within 2s", "connection refused", "is a server running there?")
		require.NotContains(t, p.stderr.String(), "menagerie serve", "the user has servers")
	}
	a := &app{} // without --servers
	unknown := &net.DNSError{Err: "no such host: is the name right?", Name: "zk", IsNotFound: true}
	require.EqualError(t, a.unreachable(time.Second, unknown), "cannot reach "+a.described()+" within 1s (lookup zk: no such host: is the name right?)")
	require.Equal(t, ", because no server could be reached (lookup zk: no such host: is the name right?)", unreached(unknown))
	require.ErrorContains(t, a.unreachable(time.Second, nil), `Start one with "menagerie serve" or name yours with --servers`)
}

// A run in cron sends a mail for each line.
func TestAServerThatIsDownIsNotReportedIfAnotherIsThereAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	down := nobody(t)
	for range 8 { // the order is random
		run(t, "lock", "/a", "--servers", down+","+down+","+s.addr, "--", "true").succeeded()
	}
	both := start(t, "lock", "/a", "--servers", down+","+nobody(t), "--connect-timeout", "10m", "--", "true")
	both.complains("connection refused: no server listens there; still trying")
	both.signal(syscall.SIGINT)
	require.Equal(t, 130, both.wait())
	run(t, "lock", "/a", "-v", "--servers", down, "--connect-timeout", "300ms", "--", "true").failed(exitFailure, "connection refused")
}

func TestServersWithoutAQuorumAreNoReasonToStartOne(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	p := run(t, "ls", "/a", "--connect-timeout", "2s", "--servers", nobody(t)+","+nobody(t)+","+l.Addr().String())
	p.failed(exitFailure, "within 2s (1 of 3 servers answers, and has no quorum: 127.0.0.1:", "connection refused", "then closed it")
	require.NotContains(t, p.stderr.String(), "menagerie serve")
}
