package zksync

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Option changes a default of what is at a path. One that has no meaning there is ErrMisuse.
type Option session.Option

// SessionOption changes a default of [Connect].
type SessionOption session.SessionOption

// CommonOption is an [Option] and, as the default of all paths, a [SessionOption].
type CommonOption interface {
	Option
	SessionOption
}

// WithTimeout asks for a session timeout; the default is 15 s, and the servers have limits of their own
// ([Session.Timeout]). The locks of a crashed holder are free after that time plus one server tick. With less
// than 10 s a lease may end after the next grant if the servers' leader is cut off: see docs/guarantees/leases.md.
func WithTimeout(d time.Duration) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if d < time.Millisecond || d > 24*time.Hour {
			s.Misuse("a session timeout of %v; give one between 1ms and 24h", d)
		}
		s.Timeout = d
	})
}

// WithExistingChroot refuses a chroot that does not exist: a misspelt one would have locks of its own.
func WithExistingChroot() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Existing = true })
}

// WithForwardOnly ends the session for good, with ErrStale, if the servers have lost transactions that it has
// seen: tokens and values would go back. Without it the session logs a warning.
func WithForwardOnly() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Forward = true })
}

// WithAuth presents a credential to the servers, for example WithAuth("digest", []byte("user:password")). It
// may be given more than once.
func WithAuth(scheme string, cred []byte) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if scheme == "digest" && !bytes.ContainsRune(cred, ':') {
			s.Misuse("WithAuth: a credential of the scheme digest is user:password, and this one has no colon")
		}
		s.Auth = append(s.Auth, zkconn.Auth{Scheme: scheme, Cred: slices.Clone(cred)})
	})
}

// WithACL sets the access control list of all nodes that are created; the default is open to everybody. Nodes
// that exist keep their lists: if everybody may still change the path, the session logs a warning.
func WithACL(acl ...zk.ACL) CommonOption {
	return session.ForBoth("WithACL", func(s *session.Settings) {
		if len(acl) == 0 {
			s.Misuse("an empty access control list, which the servers refuse")
		}
		s.ACL = slices.Clone(acl)
	})
}

// WithTLS uses TLS. Without a ServerName the host name of each address is verified.
func WithTLS(c *tls.Config) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.TLS = c.Clone() })
}

// WithTLSFiles uses TLS with PEM files, which are read again at each connection: ca has the trusted
// authorities ("" for those of this machine), cert and key the client's certificate, or "".
func WithTLSFiles(ca, cert, key string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.TLSFiles(ca, cert, key) })
}

// WithDialer replaces the function that opens connections. It must return when its context ends, and look up
// names itself.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Dial = dial })
}

// WithLogger makes the session log to l. The default is silence. docs/logs.md lists what is logged.
func WithLogger(l *slog.Logger) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Logger = l })
}

// WithTracer calls t at every acquisition, release, loss and state change.
func WithTracer(t Tracer) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Trace = tracing(t) })
}

// WithLeaseFraction ends leases, and places in queues, at the given fraction of the session timeout after the
// newest request that the servers acknowledged. "The client stops after five missed heartbeats, the servers
// free after ten" is 0.5; the default is 1.
func WithLeaseFraction(f float64) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if !(f > 0 && f <= 1) {
			s.Misuse("a lease fraction of %v; give one above 0 and at most 1", f)
		}
		s.Fraction = f
	})
}

// WithSessionFile keeps the id and password of the session in a file (mode 0600). The next process with the
// file ends the session of a killed one, so its locks are free at once. A second living process with it gets
// ErrMisuse.
func WithSessionFile(path string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.File = path })
}

// WithHandover sets how many times in a row a process may hand its place to the next goroutine of the same
// object, without a request, while another contender waits. The default is 32, within 10 ms. Both count from the
// grant, or from the moment when the process is notified of the contender. While none waits there is no bound, but
// the process asks the servers once in each session timeout. 0 turns hand-overs off.
func WithHandover(n int) Option {
	return session.ForLock("WithHandover", func(s *session.Settings) {
		if n < 0 {
			s.Misuse("a hand-over bound of %d; 0 turns it off", n)
		}
		s.Handover = n
	})
}

// WithLinger keeps the place in the queue for up to d after the last Unlock, so that locking again costs no
// request. The place is given up as soon as another contender queues or the connection is lost. The Try forms
// of other sessions find the lock taken.
func WithLinger(d time.Duration) Option {
	return session.ForLock("WithLinger", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a linger of %v", d)
		}
		s.Linger = d
	})
}

// WithMaxHold ends every lease d after its grant with ErrMaxHold, and others are granted; at a zkqueue.Queue the element
// comes again. A critical section that goes on is stopped only by fencing.
func WithMaxHold(d time.Duration) Option {
	return session.ForLock("WithMaxHold", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a maximum hold of %v", d)
		}
		s.MaxHold = d
	})
}

// WithLockDelay keeps a lock from being granted for d (at least 1 ms) after a hold that was lost and not
// released, so that late writes of the lost holder can arrive; [Fence] and [Lease.Guard] need no time. All
// users of a path must give the same d. docs/guarantees/locks.md says from when it counts.
func WithLockDelay(d time.Duration) Option {
	return session.LockDelay{Option: session.Misplaced("WithLockDelay"), D: d}
}

// WithAsyncUnlock makes Unlock return as soon as the release is sent; the lease ends before. Later requests
// of the session come after the release. A process that exits without Close may keep the lock until its
// session expires.
func WithAsyncUnlock() Option {
	return session.ForLock("WithAsyncUnlock", func(s *session.Settings) { s.Async = true })
}

// WithDeadlockDetection lets a wait that closes a cycle of waits fail with [ErrDeadlock], one second after it began; Lock panics
// with it. Before that it sends nothing, and never for a caller that holds nothing; but a lock that is held during another wait is
// not handed over inside the process. Of locks with this option a caller holds the leases of its context, what its goroutine
// acquired, and what the goroutine that started that one holds at other paths. It looks at the locks in the directories of the locks that the session
// holds or waits for; with roots, also at all below these. docs/guarantees/locks.md says what it finds, and when an alarm may be false.
func WithDeadlockDetection(roots ...string) CommonOption {
	return session.ForBoth("WithDeadlockDetection", func(s *session.Settings) {
		for _, root := range roots {
			if node.ValidateNode(root) != nil {
				s.Misuse("a root of %s; give a path such as /locks", errs.ShowPath(root))
			}
		}
		s.Deadlocks = &session.Deadlocks{Roots: slices.Clone(roots)}
	})
}

// WithCodec sets how values become the data of nodes. The default is JSON. A value that the codec refuses, or
// that does not fit into a request of 1 MB, is ErrMisuse before anything is sent.
func WithCodec(c Codec) Option {
	return session.ForValues("WithCodec", func(s *session.Settings) {
		if s.Codec = c; c == nil {
			s.Misuse("a nil Codec")
		}
	})
}

// Codec turns values into the data of nodes, and back, into a pointer. Many goroutines may call both at once.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// Raw is the codec of values that are []byte or string.
var Raw Codec = codec.Raw

// WithName sets a name for people, such as the service's.
func WithName(name string) CommonOption {
	return session.ForBoth("WithName", func(s *session.Settings) { s.Name, s.Label = name, name })
}
