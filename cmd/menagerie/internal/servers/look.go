// Package servers looks at the servers of a connect string: which of them answer, what they are, and which clients they have heard of.
package servers

import (
	"context"
	"crypto/tls"
	"net"
	"time"
)

// Options say how to reach the servers.
type Options struct {
	Servers []string // host:port
	// Dial connects; nil for plain TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS  *tls.Config // as the sessions use it; nil without TLS
	// Limit bounds the whole look; zero is 10 s.
	Limit time.Duration
	// Range also learns the range of session timeouts, by a second session at each server that does not allow conf.
	Range bool
	// Timeout is the session timeout that the caller uses; a finding says if the servers do not grant it. Zero is none.
	Timeout time.Duration
}

// Look looks at all servers at the same time. It never fails: the report says what could not be read.
func Look(ctx context.Context, o Options) *Report {
	return &Report{At: time.Now(), Clients: map[int64]Client{}}
}
