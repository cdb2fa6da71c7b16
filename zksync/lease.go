package zksync

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-zookeeper/zk"
)

// Lease is one hold: of a mutex, a read or write lock, of permits. It belongs to one ZooKeeper session and ends
// with it. It is never reused, so a late Unlock cannot touch a later hold.
//
// A lease is lost when it can no longer be proved to be held: no proof remains that the leader of the servers
// counts the session as alive. On a silent connection that is usually after 0.6 of the session timeout, at the
// latest after 0.95, and before the servers can grant to another contender, if the clocks run at the same rate and
// the process is not paused. Only fencing stops the writes of a paused process: [Lease.Token], [Lease.Guard].
type Lease lease.Lease

// LeaseFrom returns the lease under which a function runs, from the context that the function was given: by Do and its like, Run of
// an election, Assign, a Once, a flight or a job. In [Lease.Context] it finds that lease. Without one it returns nil. Nested
// locks: the innermost; a [Multi]: its last.
func LeaseFrom(ctx context.Context) *Lease { return (*Lease)(lease.From(ctx)) }

func (l *Lease) inner() *lease.Lease { return (*lease.Lease)(l) }

// made is l of a hold. Of the nil Lease of a mutex that is not held it panics.
func (l *Lease) made() *lease.Lease {
	if l == nil {
		panic(errs.Wrap("zksync", "", "", errs.Misuse("a nil Lease: nothing is held")))
	}
	return l.inner()
}

// Token is the fencing token of the grant. Send it with every write, and have your storage refuse a smaller one
// than the greatest that it has seen.
func (l *Lease) Token() Token { return Token(l.made().Token()) }

// Context has the values of the acquiring context, but ends only with the lease. context.Cause is then ErrLost,
// ErrReleased or ErrMaxHold. See also [Lease.Done].
func (l *Lease) Context() context.Context { return l.made().Context() }

// Done is closed when the lease ends; Err says why. After a lost session it is closed before the servers can grant
// to another contender. If the lease's node is removed externally, the servers grant the lock at once; Done closes
// at most a second later, if there is a connection. That takes a watch, one request in the background, at the
// first call of Context or Done or after half a second of the hold.
func (l *Lease) Done() <-chan struct{} { return l.made().Done() }

// Err is nil while the lease is held. Then it is ErrReleased, ErrLost, or ErrMaxHold, which is also an ErrLost.
// The text says why the session was lost.
func (l *Lease) Err() error { return l.made().Err() }

// Valid reports whether the lease can be proved to be held at this instant. It reads clocks and sends nothing, so
// it notices an externally removed node only when [Lease.Done] does. It is false during a downgrade. The process
// may be paused right after Valid returns, so it does not replace fencing.
func (l *Lease) Valid() bool { return l.made().Valid() }

// Path is the path of the lock: as given to its constructor, or the one below it by which a Once, a flight or an item of a group is locked.
func (l *Lease) Path() string { return l.made().Path() }

// Expires is when the lease ends if no server answers any more, or at its [WithMaxHold] if that is earlier. Each
// answer moves it. It is the zero time once the lease has ended.
func (l *Lease) Expires() time.Time { return l.made().Expires() }

// Node is the path of the lease's own node.
func (l *Lease) Node() string { return l.made().Node() }

// Revoked is closed when another process asks the holder to release the lock, with [Revoke]. That does not end the
// lease: a holder may ignore it. The channel stays open at the end of the lease, so select on Done, too.
//
// The first call creates a node beside the lock's entry and watches it, with three requests in the background, and
// one more at the end of the hold. Goroutines that hold by the same node share the request; a node that was asked
// for is not handed over in the process.
func (l *Lease) Revoked() <-chan struct{} { return l.made().Revoked() }

// Unlock releases the lease and waits for the servers to confirm, at most a second. Without a connection it
// returns nil at once, and the session removes the node as soon as it can. If the lease was lost before, Unlock
// returns ErrLost: another process may have held at the same time. A second call returns the same.
func (l *Lease) Unlock() error { return l.made().Unlock() }

// Guard runs ZooKeeper operations as one transaction that the servers apply only while this lease holds: it begins
// with a check of the lease's node. So they refuse a write of a holder that was paused or cut off. The operations
// are those of zk.Conn.Multi, with paths below the session's chroot; Guard returns their results in order.
//
// If the lease was lost, or its node is gone, the error is ErrLost; after Unlock or Close it is ErrReleased. If an
// operation fails, nothing was applied, and Op and Path of the *Error name that operation. If the answer is lost,
// the error satisfies [Ambiguous].
func (l *Lease) Guard(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return l.made().Guard(ctx, ops...)
}
