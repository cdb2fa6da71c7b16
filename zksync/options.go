package zksync

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Option changes a default of [Connect], [Tap] or of the constructor of a
// primitive. An option given where it means nothing is reported as ErrMisuse: by
// Connect at once, by a primitive's first call. The functions of this package make them.
type Option session.Option

// WithTimeout asks for a session timeout; the default is 10 s. The servers bound
// it by their own limits: [Session.Timeout] tells what they granted. A crashed
// holder's locks are free after that time at the latest plus one server tick. For
// [Tap] it is an upper bound of what the adopted connection negotiated.
func WithTimeout(d time.Duration) Option {
	return session.ForSession("WithTimeout", func(s *session.Settings) {
		if d < time.Millisecond || d > 24*time.Hour {
			s.Misuse("a session timeout of %v; give one between 1ms and 24h", d)
		}
		s.Timeout = d
	})
}

// WithAuth presents a credential to the servers after every handshake, for
// instance WithAuth("digest", []byte("user:password")). It may be given more than
// once. A scheme that the servers do not know, or a credential that they refuse, makes Connect
// fail, and costs it one round trip to find out.
func WithAuth(scheme string, cred []byte) Option {
	return session.ForSession("WithAuth", func(s *session.Settings) {
		s.Auth = append(s.Auth, zkconn.Auth{Scheme: scheme, Cred: slices.Clone(cred)})
	})
}

// WithACL sets the access control list of every node that is created, entries and
// directories alike; the default lets everybody do everything. For a session it is
// the default of its locks. A digest list ("digest:user:hash") together with
// [WithAuth] keeps strangers from seeing, taking or removing a lock.
func WithACL(acl ...zk.ACL) Option {
	return session.ForBoth("WithACL", func(s *session.Settings) {
		if len(acl) == 0 {
			s.Misuse("an empty access control list, which the servers refuse")
		}
		s.ACL = slices.Clone(acl)
	})
}

// WithTLS speaks TLS to the servers. When the configuration names no server, the
// host name of each address is verified.
func WithTLS(c *tls.Config) Option {
	return session.ForSession("WithTLS", func(s *session.Settings) { s.TLS = c.Clone() })
}

// WithDialer replaces the function that opens connections. It must obey its
// context. The address is one of the connect string's, unresolved.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return session.ForSession("WithDialer", func(s *session.Settings) { s.Dial = dial })
}

// WithLogger has the session log to l. The default logs nothing. What it logs:
//   - Warn: the first failed attempt to connect, at once and with its cause ("cannot connect"); a
//     place in a queue that was lost; a node that could not be removed at once.
//   - Info: "connection lost" and "session lost" with the cause, the first attempt that fails
//     after that, and "connected again" with how long it took (the attribute after).
//   - Debug: every other attempt, one line each, and what the client library says.
//   - Error: the servers refuse the session for good.
func WithLogger(l *slog.Logger) Option {
	return session.ForSession("WithLogger", func(s *session.Settings) { s.Logger = l })
}

// WithTracer has t told of every acquisition, release, loss and state change.
func WithTracer(t Tracer) Option {
	return session.ForSession("WithTracer", func(s *session.Settings) { s.Trace = tracing(t) })
}

// WithLeaseFraction ends leases earlier than the servers end the session: at the
// given fraction of the session timeout after the newest request that the servers
// acknowledged. "The client stops after five missed heartbeats, the servers free
// after ten" is 0.5. Waiters lose their place in the queue at the same time. The
// session then shows that it lives three times in that span at least. The fraction lies above 0 and at
// most at 1, which is the default.
func WithLeaseFraction(f float64) Option {
	return session.ForSession("WithLeaseFraction", func(s *session.Settings) {
		if !(f > 0 && f <= 1) {
			s.Misuse("a lease fraction of %v; give one above 0 and at most 1", f)
		}
		s.Fraction = f
	})
}

// WithSessionFile keeps the id and password of the session in a file (mode 0600)
// until the servers have confirmed its end, which Close asks for. A process that was
// killed, or closed its session while the servers could not be reached, and starts
// again with the same file ends its dead predecessor's session on the servers, so
// nobody waits out the timeout for what it held. Neither a Connect that fails nor
// another crash forgets the predecessor. The file is locked while its owner lives: a
// second living process with the same file gets ErrMisuse, never the first one's
// session.
func WithSessionFile(path string) Option {
	return session.ForSession("WithSessionFile", func(s *session.Settings) { s.File = path })
}

// WithHandover sets how many times in a row an object may hand its place in the
// queue to the next goroutine that waits on the same object, without asking the
// servers; the default is 32, within 10 ms of the grant. Then the process queues
// anew behind the others. 0 gives strict order between processes: every goroutine
// queues by itself.
func WithHandover(n int) Option {
	return session.ForLock("WithHandover", func(s *session.Settings) {
		if n < 0 {
			s.Misuse("a hand-over bound of %d; 0 turns it off", n)
		}
		s.Handover = n
	})
}

// WithLinger keeps the place in the queue for up to d after the last Unlock while
// nobody else queues, so that locking again costs no request. As soon as anybody
// queues the place is given up. The Try forms do not queue: those of other sessions
// find the lock taken meanwhile. The default, 0, gives it up at once.
func WithLinger(d time.Duration) Option {
	return session.ForLock("WithLinger", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a linger of %v", d)
		}
		s.Linger = d
	})
}

// WithMaxHold bounds every hold: d after the grant the library gives the lease up.
// Its Done closes, its Err is ErrMaxHold, and others are granted. A critical
// section that hangs cannot hold for ever although its process still lives; one
// that goes on regardless is only stopped by fencing. The default, 0, is no bound.
func WithMaxHold(d time.Duration) Option {
	return session.ForLock("WithMaxHold", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a maximum hold of %v", d)
		}
		s.MaxHold = d
	})
}

// WithName sets the name shown to people who ask who holds or waits, for instance
// of the service; for a session it is the default of its locks. It identifies
// nobody.
func WithName(name string) Option {
	return session.ForBoth("WithName", func(s *session.Settings) { s.Name = name })
}
