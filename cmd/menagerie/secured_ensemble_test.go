//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestARealServerIsReachedOverTLSAndWithCredentials(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	ours := newAuthority(t)
	srv, client := ours.issue(t, "localhost"), ours.issue(t, "client")
	for _, mutual := range []bool{false, true} {
		e := ensemble.ForTestConfig(t, ensemble.Config{TLS: &ensemble.TLS{
			KeyFile: srv.both, TrustFile: ours.file, ClientAuth: mutual,
		}})
		secure := e.Servers()[0].SecureAddr()
		flags := []string{"--servers", secure, "--tls-ca", ours.file}
		anonymous := flags
		if mutual {
			flags = append(flags[:len(flags):len(flags)], "--tls-cert", client.cert, "--tls-key", client.key)
		}
		// A server that has just started takes seconds for its first handshake, on a busy machine many, and the command may say so.
		first := run(t, append([]string{"ls", "--connect-timeout", patience.String()}, flags...)...)
		require.Zero(t, first.wait(), first.stderr.String())
		if mutual {
			// The certificate is a credential, too.
			run(t, append(append([]string{"lock"}, flags...), "/mine", "--acl", "creator", "--", "true")...).succeeded()
			run(t, "lock", "/mine", "--servers", e.Connect(), "--", "true").failed(exitFailure, "/mine", "--auth")
			run(t, append([]string{"ls", "--connect-timeout", "3s"}, anonymous...)...).failed(exitFailure, secure, "TLS: ", "refuses the handshake")
		}
		p := run(t, append(append([]string{"lock"}, flags...), "/a", "--auth", "digest:me:secret", "--acl", "creator", "--", "echo", "ran")...)
		p.succeeded()
		require.Equal(t, "ran\n", p.stdout.String())
		// What was made with a credential is nobody else's, over the plain port neither.
		run(t, "lock", "/a", "--servers", e.Connect(), "--", "true").failed(exitFailure, "/a", "--auth")
		run(t, "lock", "/a", "--servers", e.Connect(), "--auth", "digest:me:secret", "--", "true").succeeded()
		run(t, "ls", "/a", "--servers", e.Connect(), "--auth", "digest:me:secret").succeeded()
		// A port is one or the other.
		run(t, "ls", "--servers", secure, "--connect-timeout", "3s").failed(exitFailure, secure)
		run(t, "ls", "--servers", e.Connect(), "--tls-ca", ours.file, "--connect-timeout", "3s").failed(exitFailure, e.Connect(), "TLS")
		other := newAuthority(t)
		run(t, "ls", "--servers", secure, "--tls-ca", other.file, "--connect-timeout", "3s").failed(exitFailure, secure, "unknown authority")
	}
}
