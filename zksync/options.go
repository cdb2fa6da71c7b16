package zksync

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Option changes a default of what is at a path: of a lock, a queue, a map. Constructors take it.
// If the option has no meaning there, the first call reports ErrMisuse.
type Option session.Option

// SessionOption changes a default of [Connect].
type SessionOption session.SessionOption

// CommonOption is an [Option] and a [SessionOption]. Given to [Connect], it is the default of all paths.
type CommonOption interface {
	Option
	SessionOption
}

// WithTimeout asks for a session timeout; the default is 15 s. The servers have limits of their own: see
// [Session.Timeout]. The locks of a crashed holder are free after that time plus one server tick at the latest.
// With less than 10 s, or six ticks if the servers' tickTime is not 2 s, a lease may end after the next grant if
// the servers' leader is cut off: docs/guarantees.md has a table.
func WithTimeout(d time.Duration) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if d < time.Millisecond || d > 24*time.Hour {
			s.Misuse("a session timeout of %v; give one between 1ms and 24h", d)
		}
		s.Timeout = d
	})
}

// WithExistingChroot refuses a chroot that does not exist, with ErrMisuse. Without it the session creates the
// chroot and logs a warning: a misspelt chroot looks like a new one, and its locks exclude no process of the right
// one. Create the chroot as a persistent node: the servers remove an empty container. It costs Connect two
// requests.
func WithExistingChroot() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Existing = true })
}

// WithForwardOnly ends the session for good if the servers have lost transactions that it has seen, because an old
// backup was restored or other servers have the address: tokens and values would go back. Calls then fail with
// ErrStale. Without it the session logs a warning and goes on. A session that begins after the loss cannot notice
// it. It costs one request in each further ZooKeeper session.
func WithForwardOnly() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Forward = true })
}

// WithAuth presents a credential to the servers after every handshake, for example WithAuth("digest",
// []byte("user:password")). It may be given more than once. Connect fails if the servers do not know the scheme or
// refuse the credential; this check costs one round trip.
func WithAuth(scheme string, cred []byte) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		s.Auth = append(s.Auth, zkconn.Auth{Scheme: scheme, Cred: slices.Clone(cred)})
	})
}

// WithACL sets the access control list of all nodes that are created. By default everybody may do everything. With
// a digest list ("digest:user:hash") and [WithAuth] no stranger can see, take or remove a lock. Nodes that exist
// keep their lists: if everybody may still change the path, the session logs a warning with the command that mends
// it. That look costs one request at the first use of the path.
func WithACL(acl ...zk.ACL) CommonOption {
	return session.ForBoth("WithACL", func(s *session.Settings) {
		if len(acl) == 0 {
			s.Misuse("an empty access control list, which the servers refuse")
		}
		s.ACL = slices.Clone(acl)
	})
}

// WithTLS uses TLS. If the configuration has no ServerName, the
// host name of each address is verified.
func WithTLS(c *tls.Config) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.TLS = c.Clone() })
}

// WithTLSFiles uses TLS with certificates from PEM files: ca has the trusted authorities ("" for those of this
// machine), cert and key the certificate for the servers ("" and "" for none). The session reads them at each
// connection, so they may be replaced at any time. If they cannot be used later, it logs a warning and goes on
// with the last good ones; at first, Connect returns ErrMisuse. [WithTLS] may set all other fields.
func WithTLSFiles(ca, cert, key string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.TLSFiles(ca, cert, key) })
}

// WithDialer replaces the function that opens connections. The function must return when its context ends. The
// address is one of the connect string: the function looks up names itself, and chooses among several addresses.
// Without this option the session looks up all names before each round of attempts, and tries every address.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Dial = dial })
}

// WithLogger makes the session log to l. By default it logs nothing.
//
//   - Error: the servers refuse the session for good or have lost transactions; the session file cannot be written.
//   - Warn: a lease or a place in a queue is lost; the first failed attempt to connect; an attempt to queue that is repeated; a node that another program removed, or that could not be removed at once; a short session timeout; a chroot that was created; a path open to everybody despite [WithACL].
//   - Info: "connection lost" and "session lost" with the cause, "connected again" with the duration; a slow look-up of a name.
//   - Debug: every other attempt, and the messages of the client library.
func WithLogger(l *slog.Logger) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Logger = l })
}

// WithTracer calls t at every acquisition, release, loss and state change.
func WithTracer(t Tracer) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Trace = tracing(t) })
}

// WithLeaseFraction ends leases earlier than the servers end the session: at the given fraction of the session
// timeout after the newest request that the servers acknowledged. "The client stops after five missed heartbeats,
// the servers free after ten" is 0.5. Waiters lose their place at the same time. The session proves three times in
// that span that it lives. The fraction is above 0 and at most 1, the default.
func WithLeaseFraction(f float64) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if !(f > 0 && f <= 1) {
			s.Misuse("a lease fraction of %v; give one above 0 and at most 1", f)
		}
		s.Fraction = f
	})
}

// WithSessionFile keeps the id and password of the session in a file (mode 0600) until the servers have confirmed
// the session's end. If the process is killed, the next process with the same file ends that session, so its locks
// are free at once and not only after the timeout. The file is locked: a second living process with the same file
// gets ErrMisuse.
func WithSessionFile(path string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.File = path })
}

// WithHandover sets how many times in a row an object may hand its place in the queue to the next goroutine that
// waits on the same object, without a request. The default is 32, within 10 ms of the grant. Then the process
// queues again, behind other processes. With 0 every goroutine queues by itself.
func WithHandover(n int) Option {
	return session.ForLock("WithHandover", func(s *session.Settings) {
		if n < 0 {
			s.Misuse("a hand-over bound of %d; 0 turns it off", n)
		}
		s.Handover = n
	})
}

// WithLinger keeps the place in the queue for up to d after the last Unlock, so that locking again costs no
// request. The default is 0. The place is given up as soon as another contender queues, the connection is lost, or
// the children of the lock's directory change. The Try forms of other sessions do not queue, and find the lock
// taken.
func WithLinger(d time.Duration) Option {
	return session.ForLock("WithLinger", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a linger of %v", d)
		}
		s.Linger = d
	})
}

// WithMaxHold ends every lease d after its grant: Done closes, Err is ErrMaxHold, and others are granted. So a
// critical section that hangs cannot hold for ever while its process lives; if it goes on, only fencing stops its
// writes. The default is 0: no bound.
func WithMaxHold(d time.Duration) Option {
	return session.ForLock("WithMaxHold", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a maximum hold of %v", d)
		}
		s.MaxHold = d
	})
}

// WithLockDelay keeps a lock from being granted for d (at least 1 ms) after a hold that was lost and not released,
// so that late writes of the lost holder can arrive. It is for resources that cannot compare tokens; [Fence] and
// [Lease.Guard] need no time. A hold is lost if its session ends without an Unlock or Close, if its node is
// removed externally, or at its [WithMaxHold]. Until the end of the delay the Try forms fail with ErrNotAcquired.
//
// All users of a path must give the same d. docs/guarantees.md says from when it counts. It costs one request for
// each grant by the servers, two after a wait. [NewMutex] and zkelection.New take it.
func WithLockDelay(d time.Duration) Option {
	return session.LockDelay{Option: session.Misplaced("WithLockDelay"), D: d}
}

// WithAsyncUnlock makes Unlock return as soon as the release is sent, so that a Lock and an Unlock cost one round
// trip. The lease ends before Unlock returns. Later requests of the session reach the servers after the release.
// If the connection is lost meanwhile, the session repeats the release. A process that exits without Close may
// keep the lock until its session expires. Elections, zkonce, zkflight and the meeting points do not take this
// option.
func WithAsyncUnlock() Option {
	return session.ForLock("WithAsyncUnlock", func(s *session.Settings) { s.Async = true })
}

// WithCodec sets how values become the data of nodes, in the types that keep values: atomics, maps, queues and
// others say so. All users of a path must use the same codec. The default is JSON; [Raw] keeps bytes as they are.
// A value that the codec refuses, or that does not fit into a request of 1 MB, is ErrMisuse before anything is
// sent.
func WithCodec(c Codec) Option {
	return session.ForValues("WithCodec", func(s *session.Settings) {
		if s.Codec = c; c == nil {
			s.Misuse("a nil Codec")
		}
	})
}

// Codec turns values into the data of nodes, and back. Unmarshal is given a pointer to the value. Many goroutines may
// call both at once.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// Raw is the codec of values that are []byte or string: their bytes are the data.
var Raw Codec = codec.Raw

// WithName sets a name for people, such as the service's. [Contender] shows it; no decision depends on it.
func WithName(name string) CommonOption {
	return session.ForBoth("WithName", func(s *session.Settings) { s.Name = name })
}
