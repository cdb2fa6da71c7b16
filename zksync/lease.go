package zksync

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-zookeeper/zk"
)

// Lease is one hold of a lock or of permits. It belongs to one ZooKeeper session, and is never reused: a late
// Unlock cannot touch a later hold.
//
// A lease is lost when no proof remains that the leader of the servers counts the session as alive: on a
// silent connection usually after 0.6 of the session timeout, at the latest after 0.95. Its loss does not
// stop the goroutine that holds it.
type Lease lease.Lease

// LeaseFrom returns the lease under which a function runs, from the context that Do, Run, Assign, a Once, a
// flight, a job or [Lease.Context] gave it, or nil. Of nested locks it is the innermost, of a [Multi] the
// last.
func LeaseFrom(ctx context.Context) *Lease { return (*Lease)(lease.From(ctx)) }

func (l *Lease) inner() *lease.Lease { return (*lease.Lease)(l) }

// made is l of a hold. Of the nil Lease of a mutex that is not held it panics.
func (l *Lease) made() *lease.Lease {
	if l == nil {
		panic(errs.Wrap("zksync", "", "", errs.Misuse("a nil Lease: nothing is held")))
	}
	return l.inner()
}

// Token is the fencing token of the grant. Send it with every write: see [Token].
func (l *Lease) Token() Token { return Token(l.made().Token()) }

// Context has the values of the acquiring context, but ends with the lease, with the cause ErrLost,
// ErrReleased or ErrMaxHold.
func (l *Lease) Context() context.Context { return l.made().Context() }

// Done is closed when the lease ends. After a lost session that is before the servers can grant to another
// contender; after the node's external removal at most a second later, if there is a connection.
func (l *Lease) Done() <-chan struct{} { return l.made().Done() }

// Err is nil while the lease is held, then ErrReleased, ErrLost or ErrMaxHold: compare with errors.Is. If
// another process has removed the node and said why, as menagerie release does, the text has that a moment later.
func (l *Lease) Err() error { return l.made().Err() }

// Valid reports whether the lease can be proved to be held at this instant, and sends nothing. The process
// may be paused right after it: it does not replace fencing.
func (l *Lease) Valid() bool { return l.made().Valid() }

// Path is the path of the lock, or the one below it by which an item is locked.
func (l *Lease) Path() string { return l.made().Path() }

// Expires is when the lease ends if no server answers any more, or at its [WithMaxHold]. It is the zero time
// once the lease has ended.
func (l *Lease) Expires() time.Time { return l.made().Expires() }

// Node is the path of the lease's node.
func (l *Lease) Node() string { return l.made().Node() }

// Revoked is closed when another process asks the holder to release the lock ([Revoke]), which it may ignore.
// It stays open at the end of the lease.
func (l *Lease) Revoked() <-chan struct{} { return l.made().Revoked() }

// Unlock releases the lease and waits at most a second for the servers. Without a connection it returns nil
// at once, and the session removes the node later. If the lease was lost before, the error is ErrLost:
// another process may have held at the same time. A second call returns the same.
func (l *Lease) Unlock() error { return l.made().Unlock() }

// Guard runs the operations of zk.Conn.Multi, with paths below the chroot, as one transaction that the
// servers apply only while this lease holds: they refuse it from a holder that was paused or cut off.
//
// The error is ErrLost if the lease was lost, ErrReleased after Unlock. If an operation fails, nothing was
// applied, and Op and Path of the *Error name it.
func (l *Lease) Guard(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return l.made().Guard(ctx, ops...)
}
