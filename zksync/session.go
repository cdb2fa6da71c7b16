package zksync

import (
	"context"
	"iter"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-zookeeper/zk"
)

// Session is a connection to ZooKeeper that outlives ZooKeeper sessions: if one is lost, every [Lease] of it
// is lost, and the Session opens the next. One is enough for a process.
type Session session.Session

func (s *Session) inner() *session.Session { return (*session.Session)(s) }

// made is s, which Connect has opened. Of a zero or nil value it panics.
func (s *Session) made() *session.Session {
	if !s.inner().Opened() {
		panic(errs.Wrap("zksync", "", "", errs.Misuse("a Session without servers: open it with Connect")))
	}
	return s.inner()
}

// Connect opens a session with the servers of a ZooKeeper connect string ("zk1:2181,zk2:2181,zk3:2181/app").
// All paths are below the chroot, which is created when needed. ctx bounds only the call. If it ends, the
// error says why the last attempt at each server failed.
func Connect(ctx context.Context, servers string, opts ...SessionOption) (*Session, error) {
	s, err := session.Connect(ctx, servers, session.Options[session.SessionOption](opts)...)
	return (*Session)(s), err
}

// State is the state of the session now.
func (s *Session) State() State { return State(s.made().State()) }

// Changes returns every change of the state after the call, in order, until ctx ends or after [Closed]. Range
// over it once.
func (s *Session) Changes(ctx context.Context) iter.Seq[State] {
	changes := s.made().Changes(ctx)
	return func(yield func(State) bool) {
		changes(func(s session.State) bool { return yield(State(s)) })
	}
}

// Timeout is the session timeout that the servers granted.
func (s *Session) Timeout() time.Duration { return s.made().Timeout() }

// Expires is when the leases of the session end if no server answers any more. It is the zero time while
// there is no ZooKeeper session.
func (s *Session) Expires() time.Time { return s.made().Expires() }

// ID is the id of the current ZooKeeper session, or 0.
func (s *Session) ID() int64 { return s.made().ID() }

// Conn is the client connection of the current ZooKeeper session, or nil, for requests that this module does
// not have. Its paths include the chroot. Do not close it, and do not keep it: it ends with the ZooKeeper
// session. The first call in one may take a second.
func (s *Session) Conn() *zk.Conn { return s.made().Conn() }

// Close releases every lease, ends the ZooKeeper session on the servers, and joins every goroutine of the
// session, within 2 s. If the servers cannot be reached, the session expires. An error concerns only the
// session file.
func (s *Session) Close() error { return s.made().Close() }

// State is the state of a [Session]'s connection.
type State int

const (
	// Connected: the servers are reachable and the session is alive.
	Connected State = iota + 1
	// Suspended: the connection is down, but the session can still be proved to live. Leases are held, calls
	// wait. A silent connection is noticed after up to 2/3 of the session timeout, so Lost may follow on
	// Connected.
	Suspended
	// Lost: the session can no longer be proved to live; its leases are lost.
	Lost
	// Closed: Close was called. It is the last state.
	Closed
)

func (s State) String() string { return session.State(s).String() }
