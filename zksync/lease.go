package zksync

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-zookeeper/zk"
)

// Lease is one hold: of a mutex, of a read or write lock, of permits. It belongs to
// one ZooKeeper session and ends with it. A Lease is never reused, so a late Unlock
// can never touch a later hold. It is safe for use by many goroutines.
//
// A lease is held until it is released or lost. It is lost when it can no longer be proved to be held: no
// proof remains that the leader of the servers counts the session as alive. With a connection that falls silent that is mostly
// after about 0.6 of the session timeout, and at the latest after 0.95. That instant comes before the servers can grant to another,
// if the clocks run at the same rate and the process is not paused. A
// paused process is told when it goes on. Only fencing
// stops its writes until then: see [Lease.Token] and [Lease.Guard].
type Lease lease.Lease

// LeaseFrom returns the lease under which a function runs, from the context that the function was given: by Do and its like, Run of
// an election, Assign, a Once, a flight or a job. In [Lease.Context] it finds that lease. Without one it returns nil. Nested
// locks: the innermost; a [Multi]: its last.
func LeaseFrom(ctx context.Context) *Lease { return (*Lease)(lease.From(ctx)) }

func (l *Lease) inner() *lease.Lease { return (*lease.Lease)(l) }

// made is l of a hold. Of the nil Lease of a mutex that is not held it panics.
func (l *Lease) made() *lease.Lease {
	if l == nil {
		panic(fmt.Errorf("%w: a nil Lease: nothing is held", errs.ErrMisuse))
	}
	return l.inner()
}

// Token is the fencing token: greater than that of every earlier grant it conflicts
// with on the same path, across processes, sessions and re-creation of the path.
// Send it with every write; have your storage refuse a smaller one than the greatest it has seen ([Fence]).
func (l *Lease) Token() Token { return Token(l.made().Token()) }

// Context has the values of the acquiring context, but is cancelled only when the
// lease ends. context.Cause is then ErrLost, ErrReleased or ErrMaxHold. [Lease.Done] says when
// a node that is removed by hand is noticed.
func (l *Lease) Context() context.Context { return l.made().Context() }

// Done is closed when the lease ends; Err tells why. If the session is lost, it
// is closed before the servers can grant to another.
//
// If the lease's node is removed by hand, the servers grant to the next at once. Done is then
// closed at most a second after the removal, if there is a
// connection. A watch of the node tells of it. The watch costs one request in the background. It is set at the
// first call of Context or Done, or when the node has been held for half a second.
func (l *Lease) Done() <-chan struct{} { return l.made().Done() }

// Err is nil while the lease is held. Then it is ErrReleased, ErrLost, or ErrMaxHold,
// which is also an ErrLost. The text of an ErrLost says why the session was lost. After that it does not change.
func (l *Lease) Err() error { return l.made().Err() }

// Valid reports whether the lease can be proved to be held at this instant. It
// reads clocks and sends no request. So it may be true for up to a second after the lease's
// node was removed by hand, and as long as there is no connection then: see [Lease.Done].
// It is false during a downgrade of the lease, because
// other readers may hold already. The process may be paused between the return of Valid and the
// caller's next step, so Valid does not replace fencing.
func (l *Lease) Valid() bool { return l.made().Valid() }

// Path is the path of the lock, as given to its constructor.
func (l *Lease) Path() string { return l.made().Path() }

// Expires is when the lease ends if no server answers any more, or at its [WithMaxHold] if that is earlier. Each answer moves it. It is
// the zero time once the lease has ended.
func (l *Lease) Expires() time.Time { return l.made().Expires() }

// Node is the path of the lease's own node.
func (l *Lease) Node() string { return l.made().Node() }

// Revoked is closed when somebody asks the holder to give the lock up, with [Revoke]. That does not end the lease: a holder
// that ignores it keeps the lock. It does not block, and is nothing to wait for alone: see also Done.
//
// The first call makes a node beside the lock's entry, and sets a watch on it, with three requests in the background; the
// end of the hold costs one request more, which removes the node. A request that was made before the first call is
// told, too, if its session has not ended. Through a disconnect a request is told after it. A request is for the lease's
// node: after a request that was told the node is not handed over to another goroutine of this process, and a
// request that comes before that is for all goroutines that hold with the node.
func (l *Lease) Revoked() <-chan struct{} { return l.made().Revoked() }

// Unlock releases the lease. It blocks until the servers confirm, at most a second. Without a connection, or if the servers
// refuse for the moment, it returns nil at once, and the session removes the node as soon as it can, at the latest when it expires. After
// Close it returns nil. If the lease was lost before, it returns
// ErrLost (ErrMaxHold): another process may have held at the same time. A second call returns the same. It costs one
// request, or none if the next holder is a goroutine of this process or the lock lingers.
func (l *Lease) Unlock() error { return l.made().Unlock() }

// Guard runs ZooKeeper operations as one transaction that the servers apply only if
// this lease still holds: it begins with a check of the lease's own node. So a write
// of a holder that was paused or cut off is refused, even from its own connection.
// The operations are those of zk.Conn.Multi (*zk.CreateRequest, *zk.SetDataRequest,
// *zk.DeleteRequest, *zk.CheckVersionRequest), with paths of the session (below its
// chroot); they are not modified. Guard returns their results, in order.
//
// It blocks until the servers answer, ctx ends, or the lease ends. A disconnect before the request is sent
// delays it. If the connection is lost or ctx ends after that, it is unknown whether the operations were applied: the error
// satisfies [Ambiguous]. If the lease was lost, or its node is gone, the error is ErrLost; after
// Unlock or Close it is ErrReleased. An operation of another type is ErrMisuse. If one
// of the operations fails, nothing was applied, and the error is the servers'; Op and Path of the *Error are then those of that
// operation ("guarded create", for example). It costs one request.
func (l *Lease) Guard(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return l.made().Guard(ctx, ops...)
}
