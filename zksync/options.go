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

// WithTimeout asks for a session timeout; the default is 15 s. The servers have limits of their
// own: [Session.Timeout] tells what they granted. The locks of a crashed
// holder are free after that time plus one server tick at the latest. With less than 10 s, or six ticks if the
// servers' tickTime is not 2 s, a holder may be told of a loss after the next grant if their leader is cut off:
// docs/guarantees.md has a table.
func WithTimeout(d time.Duration) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if d < time.Millisecond || d > 24*time.Hour {
			s.Misuse("a session timeout of %v; give one between 1ms and 24h", d)
		}
		s.Timeout = d
	})
}

// WithExistingChroot refuses a chroot that does not exist. Without it the session creates the chroot, and logs a warning: a
// misspelt one looks like a new one, and its locks exclude no process of the right one. Connect gives ErrMisuse then, and a call
// that finds the chroot removed later does, too. It costs two requests in Connect. Create the chroot as a persistent
// node: a container is removed when it is empty.
func WithExistingChroot() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Existing = true })
}

// WithForwardOnly ends the session for good if the servers have lost transactions that it has seen: an old backup was restored,
// or other servers are at the address. Then tokens and values go back, and a [Fence] does not help. Calls fail with an error that is
// ErrStale. Without it the session logs a warning, and goes on. A session that begins after the loss cannot notice it. It
// costs one request in each ZooKeeper session after the first: so no read shows older data either.
func WithForwardOnly() SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Forward = true })
}

// WithAuth presents a credential to the servers after every handshake, for
// example WithAuth("digest", []byte("user:password")). It may be given more than
// once. Connect fails if the servers do not know the scheme, or refuse the credential; this check
// costs one round trip.
func WithAuth(scheme string, cred []byte) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		s.Auth = append(s.Auth, zkconn.Auth{Scheme: scheme, Cred: slices.Clone(cred)})
	})
}

// WithACL sets the access control list of all nodes that are created, of entries and of
// directories. By default everybody may do everything. For a session it is
// the default of its locks. With a digest list ("digest:user:hash") and
// [WithAuth] no stranger can see, take or remove a lock. Nodes that exist keep their lists. So if everybody may change the path of a
// primitive, although its list does not say so, the session logs a warning with the command that mends it, once for each path. That
// costs one request at the first use of the path, and delays nothing.
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

// WithTLSFiles uses TLS with certificates from files in PEM form: ca has the authorities that are trusted ("" for those of this
// machine), cert and key the certificate that is shown to the servers ("" and "" for none). They are read again
// at each connection, so they may be replaced at any time. If they cannot be read then, or do not belong together,
// a warning is logged, and those read before are used. Connect gives ErrMisuse if they cannot be used at
// first. With [WithTLS] besides, that configuration says everything else, such as the name of the servers.
func WithTLSFiles(ca, cert, key string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.TLSFiles(ca, cert, key) })
}

// WithDialer replaces the function that opens connections. The function must return when its
// context ends, which is when the attempt does. The address is one of the connect string: the function
// looks names up itself, within that time, and chooses among several addresses. Without this option the
// session looks all names up before each round of attempts, however long that takes, and tries every address of each.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Dial = dial })
}

// WithLogger makes the session log to l. By default it logs nothing. It logs:
//   - Error: the servers refuse the session for good, or have lost transactions (WithForwardOnly); the session file cannot be written.
//   - Warn: at Connect, a session timeout that the servers had to raise to one that is too short (see [WithTimeout]); the first failed attempt to connect, at once and with its cause ("cannot connect"), of a name with
//     several addresses when all have failed; the loss of a lease
//     or of a place in a queue; an attempt to queue that failed and is repeated; a node that somebody else removed,
//     or that could not be removed at once; a chroot that did not exist, and that the session has created;
//     servers that have lost transactions ([WithForwardOnly]); a path that is open to everybody, although [WithACL] is given.
//   - Info: "connection lost" and "session lost" with the cause; the first attempt that fails
//     after that; a look-up of a name that took more than a second; "connected again" with the duration (the attribute after).
//   - Debug: every other attempt, one line each, and the messages of the client library.
func WithLogger(l *slog.Logger) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Logger = l })
}

// WithTracer calls t at every acquisition, release, loss and state change.
func WithTracer(t Tracer) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.Trace = tracing(t) })
}

// WithLeaseFraction ends leases earlier than the servers end the session: at the
// given fraction of the session timeout after the newest request that the servers
// acknowledged. The contract "the client stops after five missed heartbeats, the servers free
// after ten" is 0.5. Waiters lose their place in the queue at the same time. The
// session sends proof that it lives at least three times in that span. docs/guarantees.md says which fraction a short
// timeout needs while the servers' leader is cut off. The fraction is above 0 and at
// most 1, the default.
func WithLeaseFraction(f float64) SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if !(f > 0 && f <= 1) {
			s.Misuse("a lease fraction of %v; give one above 0 and at most 1", f)
		}
		s.Fraction = f
	})
}

// WithSessionFile keeps the id and password of the session in a file (mode 0600)
// until the servers have confirmed the session's end. If the process is
// killed, or closes its session while the servers cannot be reached, the next process with the
// same file ends that session on the servers. So its locks are free at once, and not only after
// the timeout. A Connect that fails, or another crash, does not remove the session from the file. The file is locked
// while its owner lives: a second living process with the same file gets ErrMisuse, never the first one's
// session.
func WithSessionFile(path string) SessionOption {
	return session.ForSession(func(s *session.Settings) { s.File = path })
}

// WithHandover sets how many times in a row an object may hand its place in the
// queue over to the next goroutine that waits on the same object, without a request.
// The default is 32, within 10 ms of the grant. Then the process queues
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

// WithLinger keeps the place in the queue for up to d after the last Unlock, so that
// locking again costs no request. The place is given up as soon as another contender
// queues, the connection is lost or the children of the lock's directory change. The Try forms do not queue: in other sessions they
// find the lock taken meanwhile. The default is 0: the place is given up at once.
func WithLinger(d time.Duration) Option {
	return session.ForLock("WithLinger", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a linger of %v", d)
		}
		s.Linger = d
	})
}

// WithMaxHold bounds every hold: d after the grant the library gives the lease up.
// Its Done closes, its Err is ErrMaxHold, and others are granted. So a critical
// section that hangs cannot hold for ever while its process lives. If it
// goes on, only fencing stops its writes. The default is 0: no bound.
func WithMaxHold(d time.Duration) Option {
	return session.ForLock("WithMaxHold", func(s *session.Settings) {
		if d < 0 {
			s.Misuse("a maximum hold of %v", d)
		}
		s.MaxHold = d
	})
}

// WithLockDelay keeps a lock from being granted for d after a hold that was lost, and not released. It is for resources that
// cannot refuse the late writes of a holder that is gone: they have d to arrive. (Consul calls it lock-delay. Where the resource can
// compare tokens, [Fence] and [Lease.Guard] are better: they need no time.) A hold is lost if its session ends without
// an Unlock or Close, if its node is removed by hand, and if its [WithMaxHold] has passed. A lock that
// lingers counts as held. After a release the next one is granted at once.
//
// The time counts from the moment when the next one in line has seen that the lost holder's node is gone. Who comes later
// waits for the rest of it; the clocks of the servers tell how much that is. If nobody waited at the loss, it counts
// from the moment when the first one comes. One that queued before that moment, behind others that gave up during the
// delay, waits for all of it again. If the servers' leader changes meanwhile, the difference of their clocks counts. The context bounds the wait as always. Until the end of the delay the Try forms
// fail with ErrNotAcquired. [Contenders] and [Verify] take who waits for the delay, at the head of the queue, for the holder.
//
// All users of a path must give the same d. Who finds that the holder has another, or that it has one itself
// and others have none, or the reverse, gets ErrMisuse. But nobody finds out about a holder without the option, and who did not have to list
// the queue does not find out either. Other libraries ignore the delay. If a process dies
// between the grant and the return of the call, or if servers cannot be reached at an Unlock or Close until the session
// expires, that counts as a loss, too.
//
// It costs one request more for each grant by the servers if the lock is free, and two if it had to wait. d is at least 1ms. Only [NewMutex] and zkelection.New
// take this option.
func WithLockDelay(d time.Duration) Option {
	return session.LockDelay{Option: session.Misplaced("WithLockDelay"), D: d}
}

// WithAsyncUnlock has Unlock return as soon as the release was sent to the servers, without waiting for their answer.
// So a Lock and an Unlock together cost one round trip instead of two. The lease ends before Unlock returns, as
// always. What the session asks for later reaches the servers after the release. Others may be granted up to one
// round trip after Unlock has returned. (Without this option they may be granted before it returns.) If the
// connection is lost meanwhile, the session goes on with the release on the next connection, or the lock is
// released when the session ends. Close still waits for the servers, so a process that ends with Close leaves no lock
// behind; one that exits without it keeps the lock until its session expires, if the release had not left it yet.
// Elections, zkonce, zkflight and the meeting points do not take this option.
func WithAsyncUnlock() Option {
	return session.ForLock("WithAsyncUnlock", func(s *session.Settings) { s.Async = true })
}

// WithCodec sets how values become the data of nodes, and back, in the types that keep values: atomics, maps, queues
// and others say so. All users of a path must use the same codec. The default is JSON; [Raw] keeps bytes as they are.
// A value that the codec refuses, or that does not fit into a request (1 MB with all that belongs to the request), is
// ErrMisuse before anything is sent.
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

// WithName sets a name for people, for example that of the service. [Contender] shows it. For a session it is
// the default of its locks. No decision depends on it.
func WithName(name string) CommonOption {
	return session.ForBoth("WithName", func(s *session.Settings) { s.Name = name })
}
