package zksync

import (
	"context"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-zookeeper/zk"
)

// Session is a connection to ZooKeeper that outlives single ZooKeeper sessions. If a ZooKeeper session is lost,
// every [Lease] of it is lost, and the Session opens the next one. One Session is enough for a process.
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// made is s, which Connect has opened. Of a zero or nil value it panics.
func (s *Session) made() *session.Session {
	if !s.inner().Opened() {
		panic(errs.Wrap("zksync", "", "", errs.Misuse("a Session without servers: open it with Connect")))
	}
	return s.inner()
}

// Connect opens a session with the servers of a ZooKeeper connect string ("zk1:2181,zk2:2181,zk3:2181/app", with
// an optional chroot). All paths of the session are below the chroot, which is created when needed, with a warning
// in the log: see [WithExistingChroot].
//
// It blocks until there is a ZooKeeper session or ctx ends; ctx is not used afterwards. If ctx ends, the error
// says why the last attempt at each server failed. A malformed connect string or option, or a session file in use,
// is ErrMisuse at once.
func Connect(ctx context.Context, servers string, opts ...SessionOption) (*Session, error) {
	s, err := session.Connect(ctx, servers, session.Options[session.SessionOption](opts)...)
	return (*Session)(s), err
}

// State is the state of the session at this instant.
func (s *Session) State() State { return State(s.made().State()) }

// Changes returns every change of the state after the call, in order, and loses none if the caller is slow. The
// sequence ends when ctx ends, and after [Closed]. Range over it once, in one goroutine.
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

// Conn is the client connection of the current ZooKeeper session, nil before the first, for requests that this
// module does not have. Its paths include the chroot. Do not close it, and do not keep it: it ends with the
// ZooKeeper session.
//
// The first call in a ZooKeeper session may ask the servers whether "/" exists, which makes the client library
// take room for large requests. It may also reconnect the session and wait up to a second, so that a credential of
// the session does not get into access control lists of the scheme "auth".
func (s *Session) Conn() *zk.Conn { return s.made().Conn() }

// Close releases every lease, ends the ZooKeeper session on the servers, and joins every goroutine of the session.
// It spends up to 2 s on that. If the servers cannot be reached, the session expires by its timeout, or the next
// process with the session file ends it. Further calls return together with the first, with the same result. An
// error concerns only the session file.
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
