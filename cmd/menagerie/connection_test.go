//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hash is that of me:secret.
const hash = "016djjlksVQS5RgX3M7biBGyYwY="

func TestACredentialMakesNodesWhoseDoorsItOpens(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte("# mine\n\ndigest:me:secret\r\ndigest:other:one\n"), 0o600))
	run(t, "lock", "/mine", "--servers", s.addr, "--auth", "digest:me:secret", "--acl", "creator", "--", "true").succeeded()

	for _, args := range [][]string{{"lock", "/mine", "--", "true"}, {"once", "/mine/x", "--", "true"}, {"ls", "/mine"}} {
		p := run(t, append([]string{"--servers", s.addr}, args...)...)
		if args[0] == "ls" {
			p.failed(exitFailure, "/mine is not readable with these credentials: see --auth")
			require.Contains(t, p.stdout.String(), "not readable with these credentials", "and no word of holders")
			continue
		}
		p.failed(exitFailure, "/mine", "the servers deny access", "--auth")
		require.NotContains(t, p.stderr.String(), "WithAuth")
	}
	for name, c := range map[string]struct{ env, flags []string }{
		"a flag":                      {nil, []string{"--auth", "digest:me:secret"}},
		"flags, the second one right": {nil, []string{"--auth", "digest:no:no", "--auth", "digest:me:secret"}},
		"a file":                      {nil, []string{"--auth", "@" + file}},
		"the environment":             {[]string{authEnv + "=digest:me:secret"}, nil},
		"a file in the environment":   {[]string{authEnv + "=@" + file}, nil},
		"lines in the environment":    {[]string{authEnv + "=digest:no:no\ndigest:me:secret\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startWith(t, c.env, append(c.flags, "lock", "/mine", "--servers", s.addr, "--", "true")...).succeeded()
		})
	}
	// A flag wins over the environment.
	p := startWith(t, []string{authEnv + "=digest:me:secret"}, "--auth", "digest:no:no", "lock", "/mine", "--servers", s.addr, "--", "true")
	p.failed(exitFailure, "the servers deny access", "--auth")
}

func TestAnAccessListIsThatOfTheNodesThatAreMade(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/listed", "--servers", s.addr, "--auth", "digest:me:secret", "--acl", "digest:me:"+hash+":cdrwa,digest:you:"+hash+":r", "--", "true").succeeded()
	run(t, "lock", "/listed", "--servers", s.addr, "--auth", "digest:me:secret", "--", "true").succeeded()
	run(t, "lock", "/listed", "--servers", s.addr, "--", "true").failed(exitFailure, "deny access")
	run(t, "lock", "/open", "--servers", s.addr, "--auth", "digest:me:secret", "--acl", "open", "--", "true").succeeded()
	run(t, "lock", "/open", "--servers", s.addr, "--", "true").succeeded()
}

// A secret stands in no message and in no list of processes that we start.
func TestACredentialIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no scheme":                {[]string{"ls", "--auth", secret}, "--auth is not SCHEME:CRED"},
		"no password":              {[]string{"ls", "--auth", "digest:" + secret}, "--auth is not SCHEME:CRED"},
		"a file with no scheme":    {[]string{"ls", "--auth", "@" + file}, "line 1 of " + file},
		"one dash":                 {[]string{"ls", "-auth=digest:me:" + secret}, "two dashes"},
		"one dash, before CMD":     {[]string{"lock", "/a", "-auth=digest:me:" + secret, "true"}, "two dashes"},
		"a flag without a name":    {[]string{"ls", "--=digest:me:" + secret}, "bad syntax"},
		"a password for the hash":  {[]string{"ls", "--acl", "digest:me:" + secret + ":r"}, "HASH of entry 1 of --acl"},
		"a password for the perms": {[]string{"ls", "--acl", "digest:me:" + hash + ":" + secret}, "PERMS of entry 1 of --acl"},
		"a credential for a file":  {[]string{"ls", "--auth", "@digest:me:" + secret}, "SCHEME:CRED is written without @"},
		"one of no known scheme":   {[]string{"ls", "--auth", "@plain:" + secret}, "SCHEME:CRED is written without @"},
		"one with a typing error":  {[]string{"ls", "--auth", "@@digest:me:" + secret}, "SCHEME:CRED is written without @"},
		"an access list of no use": {[]string{"ls", "--acl", secret}, "want open, creator, or digest:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, c.args...)
			p.failed(exitUsage, c.says, "--help")
			require.NotContains(t, p.stderr.String(), secret)
		})
	}
	s := startServer(t)
	for _, v := range []string{"-v", "-vv"} {
		p := startWith(t, []string{authEnv + "=digest:me:" + secret}, "lock", "/a", v, "--servers", s.addr, "--acl", "creator", "--",
			"sh", "-c", `ps -eo args > "$0"`, filepath.Join(t.TempDir(), "ps"))
		require.Equal(t, 0, p.wait())
		require.NotContains(t, p.stderr.String(), secret)
	}
}

func TestTheWorkersOfADemoInheritTheCredentialUnseen(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ours := newAuthority(t)
	addr := ours.serveTLS(t, s, false)
	p := startWith(t, []string{authEnv + "=digest:me:s3cr3t", tlsEnv + "_CA=" + ours.file},
		"demo", "--workers", "2", "--rounds", "200", "--servers", addr, "--timeout", "5s", "--acl", "creator")
	seen := false
	for ended := false; !ended; {
		out, err := exec.Command("ps", "-ww", "-o", "args=", "--ppid", strconv.Itoa(p.cmd.Process.Pid)).Output()
		if err == nil {
			seen = seen || strings.Contains(string(out), workerName)
			require.NotContains(t, string(out), "s3cr3t")
		}
		select {
		case <-p.done:
			ended = true
		case <-time.After(pause):
		}
	}
	p.succeeded()
	require.True(t, seen, "no worker was seen")
}

func TestWrongValuesOfTheConnectionAreNamedWithTheFix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, missing := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "missing.pem")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	ours := newAuthority(t)
	one, other := ours.issue(t, "one"), ours.issue(t, "other")
	for name, c := range map[string]struct {
		env  []string
		args []string
		says []string
	}{
		"missing credentials":       {nil, []string{"--auth", "@" + missing}, []string{"--auth", missing, "no such file"}},
		"empty credentials":         {nil, []string{"--auth", "@" + empty}, []string{"--auth", empty, "SCHEME:CRED"}},
		"empty flag":                {nil, []string{"--auth", ""}, []string{"--auth", "SCHEME:CRED"}},
		"environment":               {[]string{authEnv + "=nonsense"}, nil, []string{authEnv, "SCHEME:CRED"}},
		"missing authority":         {nil, []string{"--tls-ca", missing}, []string{"--tls-ca", missing, "no such file"}},
		"empty authority":           {nil, []string{"--tls-ca", empty}, []string{"--tls-ca", empty, "PEM"}},
		"authority is a folder":     {nil, []string{"--tls-ca", dir}, []string{"--tls-ca", dir, "is a directory"}},
		"authority in environment":  {[]string{tlsEnv + "_CA=" + missing}, nil, []string{tlsEnv + "_CA", missing}},
		"no authority named":        {nil, []string{"--tls-ca", ""}, []string{"--tls-ca is empty"}},
		"certificate without a key": {nil, []string{"--tls-cert", one.cert}, []string{"--tls-cert", "--tls-key"}},
		"key without a certificate": {nil, []string{"--tls-key", one.key}, []string{"--tls-key", "--tls-cert"}},
		"key of another":            {nil, []string{"--tls-cert", one.cert, "--tls-key", other.key}, []string{"--tls-cert", "--tls-key", "does not match"}},
		"missing certificate":       {nil, []string{"--tls-cert", missing, "--tls-key", one.key}, []string{"--tls-cert", missing}},
		"neither true nor false":    {[]string{tlsEnv + "_INSECURE=maybe"}, nil, []string{tlsEnv + "_INSECURE", "true or false"}},
		"off, and yet a file":       {nil, []string{"--tls=false", "--tls-ca", ours.file}, []string{"--tls=false", "--tls-ca"}},
		"creator of nobody":         {nil, []string{"--acl", "creator"}, []string{"--acl creator", "--auth"}},
		"permissions of no kind":    {nil, []string{"--acl", "digest:me:" + hash + ":x"}, []string{"PERMS", "cdrwa"}},
		"no permissions":            {nil, []string{"--acl", "digest:me:" + hash + ":"}, []string{"PERMS", "cdrwa"}},
		"empty access list":         {nil, []string{"--acl", ""}, []string{"--acl is empty"}},
		"connect timeout of zero":   {nil, []string{"--connect-timeout", "0s"}, []string{"--connect-timeout", "more than zero"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startWith(t, c.env, append([]string{"ls"}, c.args...)...).failed(exitUsage, append(c.says, "--help")...)
		})
	}
	// What does not connect does not care.
	startWith(t, []string{tlsEnv + "_CA=" + missing}, "completion", "bash").succeeded()
	startWith(t, []string{tlsEnv + "_CA=" + missing}, "lock", "--help").succeeded()
}

func TestServersAreReachedOverTLS(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ours, others := newAuthority(t), newAuthority(t)
	addr := ours.serveTLS(t, s, false)
	_, port, _ := strings.Cut(addr, ":")
	for name, c := range map[string]struct{ env, flags []string }{
		"authority":                  {nil, []string{"--tls-ca", ours.file}},
		"authority and name":         {nil, []string{"--tls-ca", ours.file, "--tls-server-name", "localhost"}},
		"any server":                 {nil, []string{"--tls-insecure"}},
		"any server, and TLS":        {nil, []string{"--tls", "--tls-insecure"}},
		"environment":                {[]string{tlsEnv + "_CA=" + ours.file}, nil},
		"environment, insecure":      {[]string{tlsEnv + "_INSECURE=true"}, nil},
		"a flag over environment":    {[]string{tlsEnv + "_CA=" + others.file}, []string{"--tls-ca", ours.file}},
		"the name in environment":    {[]string{tlsEnv + "_SERVER_NAME=localhost"}, []string{"--tls-ca", ours.file}},
		"false in environment is no": {[]string{tlsEnv + "_INSECURE=false"}, []string{"--tls-ca", ours.file}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startWith(t, c.env, append([]string{"lock", "/a", "--servers", "localhost:" + port}, append(c.flags, "--", "true")...)...).succeeded()
		})
	}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"the machine's authorities": {[]string{"--tls"}, "unknown authority: give its authority with --tls-ca)"},
		"an authority of others":    {[]string{"--tls-ca", others.file}, ": give its authority with --tls-ca)"},
		"another name":              {[]string{"--tls-ca", ours.file, "--tls-server-name", "zk1"}, "not zk1: give its name with --tls-server-name)"},
		"no TLS":                    {nil, "TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, append([]string{"ls", "--servers", addr, "--connect-timeout", "5s"}, c.flags...)...)
			p.failed(exitFailure, addr, "within 5s", c.says)
			require.Contains(t, p.stderr.String(), "menagerie: cannot connect to "+addr+": ", "told at once")
		})
	}
	// Off for once, whatever the environment says.
	startWith(t, []string{tlsEnv + "_CA=" + others.file}, "ls", "--servers", s.addr, "--tls=false").succeeded()
}

func TestServersThatWantACertificateGetOne(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	ours := newAuthority(t)
	addr, id := ours.serveTLS(t, s, true), ours.issue(t, "client")
	p := run(t, "ls", "--servers", addr, "--tls-ca", ours.file, "--connect-timeout", "5s")
	p.failed(exitFailure, addr, "TLS: ", "certificate required (the server wants a client certificate that it trusts: --tls-cert and --tls-key)")
	require.Contains(t, forPeople(errors.New("remote error: tls: bad certificate")), "bad certificate (the server wants a client certificate")
	run(t, "ls", "--servers", addr, "--tls-ca", ours.file, "--tls-cert", id.cert, "--tls-key", id.key).succeeded()
	startWith(t, []string{tlsEnv + "_CA=" + ours.file, tlsEnv + "_CERT=" + id.cert, tlsEnv + "_KEY=" + id.key},
		"bench", "--servers", addr, "--duration", "50ms", "--clients", "1,2", "--auth", "digest:me:secret", "--acl", "creator").finished()
}

// finished checks exit code 0; progress may stand on standard error.
func (p *program) finished() {
	p.t.Helper()
	require.Equal(p.t, 0, p.wait(), "stderr: %s", p.stderr.String())
}

func TestTheFirstFailedAttemptIsToldAtOnceWithItsCause(t *testing.T) {
	t.Parallel()
	addr := nobody(t)
	p := start(t, "lock", "/a", "--servers", addr, "--connect-timeout", "10m", "--", "true")
	p.complains("menagerie: cannot connect to " + addr + ": connection refused")
	p.signal(syscall.SIGINT)
	p.failed(130, "interrupted by SIGINT while waiting for /a")
	require.Equal(t, 1, strings.Count(p.stderr.String(), "cannot connect"), "once")
}

func TestOutagesAreToldOnRequest(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/used", "--servers", s.addr, "--", "true").succeeded()
	holder(t, s, "/a")
	w := start(t, "lock", "/a", "-v", "--servers", s.addr, "--", "true")
	w.complains("menagerie: waiting for /a: 1st in line, held by ")
	second := start(t, "lock", "/a", "-v", "--servers", s.addr, "--", "true")
	second.complains("menagerie: waiting for /a: 2nd in line, held by ")
	s.Stop() // for a second at least
	w.complains("menagerie: connection lost: ")
	s.Restart()
	w.complains("menagerie: connected again after ")
	w.signal(syscall.SIGINT)
	require.Equal(t, 130, w.wait())
	second.complains("menagerie: waiting for /a: 1st in line, held by ")
	second.signal(syscall.SIGINT)
	require.Equal(t, 130, second.wait())
	require.NotContains(t, second.stderr.String(), "level=")

	loud := start(t, "ls", "-vv", "--servers", s.addr)
	loud.finished()
	require.Contains(t, loud.stderr.String(), "menagerie: connected")
}

// complains waits until text stands in standard error.
func (p *program) complains(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.stderr.String(), text) }, patience, pause,
		"%q is not said; stderr: %s", text, p.stderr.String())
}

func TestAMissingChrootIsAWarningOrAWrongCommandLine(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	at := func(flags ...string) []string {
		return append([]string{"lock", "/a", "--servers", s.addr + "/ap"}, append(flags, "--", "true")...)
	}
	run(t, at("--existing-chroot")...).failed(exitUsage, "the chroot /ap does not exist, and --existing-chroot is given: correct the connect string, or create /ap")
	p := run(t, at()...)
	require.Zero(t, p.wait())
	require.Equal(t, "menagerie: created the chroot /ap, which did not exist; --existing-chroot refuses that\n", p.stderr.String())
	run(t, at("--existing-chroot")...).succeeded() // and reports nothing
	run(t, "lock", "/a", "--servers", s.addr, "--existing-chroot", "--", "true").failed(exitUsage, "has no chroot")
}

func TestAnAccessListForAPathThatWasMadeWithoutOneIsAWarning(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/open", "--servers", s.addr, "--", "true").succeeded()
	p := run(t, "lock", "/open", "--servers", s.addr, "--auth", "digest:me:secret", "--acl", "creator", "--", "true")
	require.Zero(t, p.wait())
	require.Equal(t, "menagerie: /open is open to everybody, although --acl is given: it was created without; "+
		"mend it in zkCli.sh: first addauth with the same credential, then setAcl -R /open auth::cdrwa\n", p.stderr.String())
}
