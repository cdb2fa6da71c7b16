package zksync

import (
	"context"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-zookeeper/zk"
)

// Session is a connection to ZooKeeper that outlives single ZooKeeper sessions:
// when one is lost, with every [Lease] of it, the next one is opened. It is safe
// for use by many goroutines, and one is enough for a process.
//
// A call that needs the servers while they cannot be reached waits until they can,
// its context ends, or the Session is closed.
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// Connect opens a session with the servers of a ZooKeeper connect string
// ("zk1:2181,zk2:2181,zk3:2181/app", chroot included). All paths of the session
// are below the chroot, which is created when needed.
//
// It blocks until there is a ZooKeeper session or ctx ends; then the error names
// the servers, wraps the context's error and says why the last attempt failed or, during
// the first, how long that has waited. A
// malformed connect string or option gives ErrMisuse at once, and so does a
// session file that a living process uses. ctx is not used after Connect returned.
func Connect(ctx context.Context, servers string, opts ...Option) (*Session, error) {
	s, err := session.Connect(ctx, servers, session.Options(opts)...)
	return (*Session)(s), err
}

// Tap makes a Session on a client connection that the caller has already, and goes
// on to own: a program being ported need not open a second one. All paths are
// absolute, there is no chroot.
//
// Close of the Session removes the Session's nodes and leaves the connection open; do
// not close the connection before. What could not be removed in two seconds, because
// the servers cannot be reached, is removed in the background as soon as they can: by a
// goroutine that ends when that is done or the connection is closed, whichever is
// first. Until then others are kept out, as by any holder they cannot hear of. What an
// ephemeral latch of package zklatch has counted stays until the connection is closed.
//
// A connection of one's own with [Connect] is better where there is a choice. Of an
// adopted one the frames cannot be seen, so that acquiring costs a request more, a
// hand-over costs a listing, the lease is kept alive by requests of its own four
// times per session timeout, WithLinger is ignored, and the client's own weaknesses
// remain (a second's pause before a lone server is dialled again, a data race when
// it re-sends watches). If it is lost while a node is being made, and comes back to the
// server that has kept the request, the node may be made then, after it was looked for in
// vain: a connection of one's own is searched again, but here such a node stays until the
// connection is closed. Exclusion, loss and fencing are the same.
//
// The session timeout is what the servers granted to the connection; WithTimeout,
// if given, bounds it from above. Options about connecting (WithAuth, WithTLS,
// WithDialer, WithSessionFile) are ErrMisuse. Tap blocks until the connection has a
// session that answers, or ctx ends.
func Tap(ctx context.Context, conn *zk.Conn, opts ...Option) (*Session, error) {
	s, err := session.Tap(ctx, conn, session.Options(opts)...)
	return (*Session)(s), err
}

// State is what the session knows of itself at this instant.
func (s *Session) State() State { return s.inner().State() }

// Changes returns every change of the state after the call, in order and without
// loss however slow the caller is. The sequence blocks until there is a next
// change; it ends when ctx does and after [Closed]. It is to be ranged over once: changes are
// kept for it until then, or until ctx ends.
func (s *Session) Changes(ctx context.Context) iter.Seq[State] { return s.inner().Changes(ctx) }

// Timeout is the session timeout that the servers granted, 0 before the first
// session.
func (s *Session) Timeout() time.Duration { return s.inner().Timeout() }

// ID is the id of the current ZooKeeper session, as the servers' own tools show it
// in hexadecimal; 0 while there is none.
func (s *Session) ID() int64 { return s.inner().ID() }

// Conn is the escape hatch: the client connection of the current ZooKeeper
// session. It knows nothing of the session's chroot: its requests take, and return, the paths
// on the servers, chroot included, where everything else of this module ([Lease.Guard], too)
// leaves that out. It dies with that session, so do not keep it; a request on a dead one
// fails with zk.ErrConnectionClosed. Do not close it. It is nil after a [Tap]ped
// connection was closed and before the first session.
func (s *Session) Conn() *zk.Conn { return s.inner().Conn() }

// Close releases every lease, ends the ZooKeeper session on the servers, and joins
// every goroutine of the session. Whoever waits in a call of it gets ErrClosed at
// once. When the servers cannot be reached, it tries for two seconds and then
// leaves the session to its timeout, or to whoever finds it in the session file; of a
// connection that is [Tap]ped it removes the nodes, and what is left after two seconds
// goes as soon as the connection allows. It may be called more than once, and by several at
// once; all return together, and the same. An error concerns the session file only.
func (s *Session) Close() error { return s.inner().Close() }

// State is what a [Session] knows about its connection to the servers. Its String method returns the
// state in lower case: "connected", "suspended", "lost" or "closed".
type State = session.State

const (
	// Connected means that the servers are reachable and the session is alive.
	Connected = session.Connected
	// Suspended means that the connection is down while the session can still be
	// proved to live: leases are held, calls wait.
	Suspended = session.Suspended
	// Lost means that the session can no longer be proved to live: its leases are
	// lost. The Session goes on to open the next one.
	Lost = session.Lost
	// Closed means that Close was called. It is the last state.
	Closed = session.Closed
)
