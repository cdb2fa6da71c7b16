package zksync

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-zookeeper/zk"
)

// Lease is one hold: of a mutex, of a read or write lock, of permits. It belongs to
// one ZooKeeper session and ends with it. A Lease is never reused, so a late Unlock
// can never touch a later hold. It is safe for use by many goroutines.
//
// A lease is held until it is released or can no longer be proved to be held: the
// session's newest acknowledged request is so old that the servers may have expired
// the session. That instant comes before the servers can grant to anybody else,
// provided that clocks run at the same rate and the process is not paused. A
// paused process finds out when it goes on; what it does in between only fencing
// can stop: see [Lease.Token] and [Lease.Guard].
type Lease lease.Lease

func (l *Lease) inner() *lease.Lease { return (*lease.Lease)(l) }

// Token is the fencing token: greater than that of every earlier grant it conflicts
// with on the same path, across processes, sessions and re-creation of the path.
// Pass it along with every write to a resource that refuses older ones ([Fence]).
func (l *Lease) Token() Token { return l.inner().Token() }

// Context has the values of the acquiring context, but is cancelled only when the
// lease ends; context.Cause then is ErrLost, ErrReleased or ErrMaxHold. For the removal
// of the node by somebody else see [Lease.Done].
func (l *Lease) Context() context.Context { return l.inner().Context() }

// Done is closed when the lease ends; Err tells why. When the session is lost it
// is closed before the servers can grant to anybody else.
//
// When somebody removes the lease's node by hand the servers grant to the next at once,
// and Done is closed as soon as this process hears of it: at once if the node is watched
// by then, and no later than a second after it was removed, as long as there is a
// connection. The node is watched, which costs one request in the background, from the
// first call of Context or Done on, or when it has been held for half a second.
func (l *Lease) Done() <-chan struct{} { return l.inner().Done() }

// Err is nil while the lease is held, then ErrReleased, ErrLost, or ErrMaxHold,
// which also is an ErrLost. It does not change any more.
func (l *Lease) Err() error { return l.inner().Err() }

// Valid reports whether the lease can be proved to be held at this very instant. It
// reads clocks and asks nobody. So it may be true for up to a second after somebody has
// removed the lease's node by hand, and while there is no connection: see [Lease.Done].
// It is false while a downgrade of the lease is under way, since
// others may be reading by then. Between its return and whatever the caller does
// next the process may be paused, so it is no substitute for fencing.
func (l *Lease) Valid() bool { return l.inner().Valid() }

// Path is the path of the lease's own node.
func (l *Lease) Path() string { return l.inner().Path() }

// Unlock gives the lease back. It waits for the servers' confirmation as long as
// the connection is good, at most a second; if they cannot be asked now, the
// session removes the node as soon as it can and Unlock returns nil all the same,
// since nobody is kept out longer than that or than the session. It returns
// ErrLost (ErrMaxHold) if the lease had been lost before: what was done under it
// may not have been alone. It may be called again and returns the same.
func (l *Lease) Unlock() error { return l.inner().Unlock() }

// Guard runs ZooKeeper operations as one transaction that the servers apply only if
// this lease still holds: it begins with a check of the lease's own node. So a write
// of a holder that was paused or cut off is refused, even from its own connection.
// The operations are those of zk.Conn.Multi (*zk.CreateRequest, *zk.SetDataRequest,
// *zk.DeleteRequest, *zk.CheckVersionRequest), with paths of the session (below its
// chroot); they are not modified. The results are theirs, in order.
//
// It returns ErrLost if the node is gone or the lease was lost, ErrReleased after
// Unlock, ErrMisuse for an operation of another type, and the servers' error if one
// of the operations fails: then nothing was applied, and Op and Path of the *Error are that
// operation's ("guarded create", for instance). If the connection is lost
// meanwhile, nobody knows: the error satisfies [Ambiguous]. It blocks until the
// servers answer, through a disconnect before the request is sent, and no longer
// than the lease lives.
func (l *Lease) Guard(ops ...any) ([]zk.MultiResponse, error) { return l.inner().Guard(ops...) }
