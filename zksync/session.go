package zksync

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-zookeeper/zk"
)

// Session is a connection to ZooKeeper that outlives single ZooKeeper sessions.
// If a ZooKeeper session is lost, every [Lease] of it is lost, and the Session opens the next one. It is safe
// for use by many goroutines. One Session is enough for a process.
//
// A call that needs the servers, and cannot reach them, waits until it can,
// its context ends, or the Session is closed.
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// made is s, which Connect has opened. Of a zero or nil value it panics.
func (s *Session) made() *session.Session {
	if !s.inner().Opened() {
		panic(fmt.Errorf("%w: a Session without servers: open it with Connect", ErrMisuse))
	}
	return s.inner()
}

// Connect opens a session with the servers of a ZooKeeper connect string
// ("zk1:2181,zk2:2181,zk3:2181/app", with an optional chroot). All paths of the session
// are below the chroot, which is created when needed, with a warning in the log: see [WithExistingChroot].
//
// It blocks until there is a ZooKeeper session or ctx ends. ctx is not used after Connect has returned. If ctx ends, the error names
// the servers, wraps the context's error and says why the last attempt at each server failed, or how long the first attempt
// has waited. A malformed connect string or option gives ErrMisuse at once, and so does a
// session file that a living process uses.
func Connect(ctx context.Context, servers string, opts ...SessionOption) (*Session, error) {
	s, err := session.Connect(ctx, servers, session.Options[session.SessionOption](opts)...)
	return (*Session)(s), err
}

// State is the state of the session at this instant.
func (s *Session) State() State { return State(s.made().State()) }

// Changes returns every change of the state after the call, in order, and loses none if the
// caller is slow. The sequence blocks until the next
// change. It ends when ctx ends, and after [Closed]. Range over it once, in one goroutine: the changes are
// kept for it from the call on.
func (s *Session) Changes(ctx context.Context) iter.Seq[State] {
	changes := s.made().Changes(ctx)
	return func(yield func(State) bool) {
		changes(func(s session.State) bool { return yield(State(s)) })
	}
}

// Timeout is the session timeout that the servers granted, 0 before the first
// session.
func (s *Session) Timeout() time.Duration { return s.made().Timeout() }

// ID is the id of the current ZooKeeper session, as the servers' own tools show it
// in hexadecimal; 0 while there is none.
func (s *Session) ID() int64 { return s.made().ID() }

// Conn is the client connection of the current ZooKeeper
// session, for requests that this module does not have. Its paths are those
// on the servers, with the chroot; all other paths of this module (also in [Lease.Guard])
// are without it. The connection ends with the ZooKeeper session, so do not keep it; a request on an ended one
// fails with zk.ErrConnectionClosed. Do not close it. It is nil before the first session.
//
// The first call in a ZooKeeper session may ask the servers whether "/" exists, since that makes the client library take room for
// requests of more than a kilobyte. It does not wait for the answer. It may also reconnect the session, and wait for that up to a second: if a
// lock of the session was crowded, the servers know a random credential of it, which must not get into your access control lists of the
// scheme "auth".
func (s *Session) Conn() *zk.Conn { return s.made().Conn() }

// Close releases every lease, ends the ZooKeeper session on the servers, and joins
// every goroutine of the session. Waiting calls of the session return ErrClosed at
// once. Those without an error, such as [Mutex.Lock], never return: their goroutines are parked until the process ends, and Close does not
// wait for them. A call that begins after Close fails with ErrClosed, or panics with it. Close spends up to 2 s ending the session. If the servers cannot be reached, the
// session then expires by its timeout, or the next process with the session file ends it. Close
// may be called more than once, also concurrently: all calls return together, with the same
// result. An error concerns the session file only.
func (s *Session) Close() error { return s.made().Close() }

// State is the state of a [Session]'s connection to the servers.
type State int

const (
	// Connected means that the servers are reachable and the session is alive.
	Connected State = iota + 1
	// Suspended means that the connection is down, but the session can still be
	// proved to live: leases are held, calls wait. A silent connection is noticed after up to 2/3 of the session timeout.
	// Leases may be lost before that, so Lost may follow on Connected.
	Suspended
	// Lost means that the session can no longer be proved to live: its leases are
	// lost. The Session opens the next one.
	Lost
	// Closed means that Close was called. It is the last state.
	Closed
)

// String is "connected", "suspended", "lost" or "closed".
func (s State) String() string { return session.State(s).String() }
