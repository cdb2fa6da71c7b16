package zkconn

import (
	"context"
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// Auth is one credential; it is written again after every handshake.
type Auth struct {
	Scheme string
	Cred   []byte
}

// Config says how to reach the servers.
type Config struct {
	Servers []string // host:port, at least one
	Timeout time.Duration
	Auth    []Auth
	// Dial gets one of Servers, as it is, or what Resolve has made of it. Its context ends with the attempt.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Resolve returns the addresses of a host name. Its context ends only with the client. If it is nil, and Dial
	// is not, Dial gets names. If both are nil, the standard library does both.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Secure, if not nil, makes a connection speak TLS, with a server of that name. It leaves raw open if it fails.
	Secure         func(ctx context.Context, raw net.Conn, host string) (net.Conn, error)
	Chroot         string // of the paths of its user; "" for none. All paths here are whole ones
	ExistingChroot bool   // refuse to make the chroot
	ForwardOnly    bool   // end with ErrBackwards if the servers have lost transactions
	// Admit, if not nil, is called in each session before calls may begin there. If it returns an error while the session lives,
	// the client is refused for good. It must return when its context ends, and calls nothing that waits for [Client.Epoch].
	Admit         func(ctx context.Context, e *Epoch) error
	LeaseFraction float64   // of the timeout, after which leases end; 0 for all of it
	Log           *logs.Log // nil for none
	// OnSession is called for every new session before it is used, and again at each connect of the session.
	OnSession func(id int64, passwd []byte)
	// OnRequest is called at the end of every request that was sent, before its caller learns of that; nil for nothing. It must not block.
	OnRequest func(Exchange)
	// OnEnded is called once the servers have confirmed that a session is gone: a session for
	// which OnSession was called, or a predecessor. It is not called after Close has returned.
	OnEnded func(id int64)
	// Predecessors are the sessions of dead processes. The client ends them on the servers.
	Predecessors []Credentials
}

// Credentials resume or end a session.
type Credentials struct {
	ID     int64
	Passwd []byte
}
