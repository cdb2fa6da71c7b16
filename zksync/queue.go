package zksync

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// queue is a directory of ephemeral sequential nodes, one per entry: the one
// primitive under everything else. docs/layout.md describes the nodes.
//
// The protocol goes back to the lock recipe of the ZooKeeper documentation. The
// one-request entry (a transaction that also writes to the directory, so that its
// Stat comes back) and the rule that the set ahead only shrinks are what make it
// cheaper; the arguments stand beside the lines that rely on them.
type queue struct {
	s      *Session
	dir    string // on the servers, chroot included
	sub    string // its end, where the queue is below the primitive's path
	kind   Kind
	weight int64
	grant  policy
	acl    []zk.ACL
	name   string
	extras extras
	terms  *terms // nil unless all who queue must agree on something
	kept   *kept  // nil but of a read-write lock
	rival  *rival // whose nodes must not be in the directory, nil if any may

	// readOnlyDir is set once the servers refused to let us write the directory's
	// data. Then an entry is a plain create, and a listing tells what the
	// transaction's Stat would have told.
	readOnlyDir *atomic.Bool
}

// place is an entry of ours in a queue. It lives and dies with one epoch.
type place struct {
	q     *queue
	e     *zkconn.Epoch
	self  entry // with its czxid, the fencing token
	node  string
	known map[string]int64 // czxids of entries, where they had to be asked for

	first  bool        // nobody has been in the queue's directory before, since it was made
	unseen bool        // it was not alone when it entered, and no listing has shown the queue since
	gone   atomic.Bool // the place is lost: nothing may be granted on it any more

	// doubts counts guarded transactions that may yet be applied as long as the node is there:
	// those without an answer.
	doubts atomic.Int32

	// What the place needs of the epoch is proof that the leader of the servers counts its session as
	// alive: settle ends asking for it, since the place may be the next, and undepend depending on
	// it, since it was granted. Each is nil before.
	settle, undepend func()

	// turning is set while we replace the node ourselves, so that its removal is no loss. missed
	// is set when something was told of the node: see turnBack.
	turning, missed atomic.Bool

	guarding atomic.Pointer[guarding] // nil until it is granted
}

// newPlace is an entry that has just been made.
func newPlace(q *queue, e *zkconn.Epoch, self entry, node string, unseen bool) *place {
	return &place{q: q, e: e, self: self, node: node, unseen: unseen}
}

// depend waits until a place that nothing is in the way of can be held: until it is proved that the
// leader of the servers counts its session as alive. Then the servers have not ended it, nor
// removed its node, and cannot before the lease clock says so. A place that was known to be the next has asked
// for that proof while it waited, so it is there, and no request stands between the release and the
// grant; if it became the next a moment ago, the answer is on its way.
func (p *place) depend(ctx context.Context) (err error) {
	p.undepend, err = p.e.Depend(ctx)
	return err
}

// unsustain ends all that.
func (p *place) unsustain() {
	for _, end := range []func(){p.settle, p.undepend} {
		if end != nil {
			end()
		}
	}
}

// errGone means that our own node vanished while the session lived: somebody
// deleted it. That is a loss of the place, never a grant.
var errGone = node.ErrGone

// acquire enters the queue and waits until the entry is granted. Through
// disconnects it keeps its place, after the loss of the session it queues anew at
// the tail. It returns the error of ctx, or one that trying again would not mend.
// Whatever it returns, no entry is left behind other than that of the place
// returned: what cannot be removed at once is left to the reaper. old, if not nil,
// is a granted place that is given up in the same transaction; entered, if not nil,
// is one that waits already.
func (q *queue) acquire(ctx context.Context, old, entered *place) (*place, error) {
	for pace := (node.Pace{}); ; {
		p, alone, err := entered, false, error(nil)
		var e *zkconn.Epoch
		if p == nil {
			e, p, alone, err = q.anew(ctx, old)
		} else {
			e = p.e
		}
		old, entered = nil, nil
		if err == nil {
			if err = p.await(ctx, alone); err != nil {
				p.leave(cleanupGrace)
			}
		}
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, errGone), errors.Is(err, zkconn.ErrOver):
			q.s.logger.Warn("lost the place in a queue, queueing anew", "path", q.s.local(q.dir), "cause", err)
		default:
			return nil, q.failure(ctx, err)
		}
		if err := pace.Rest(ctx, e); ctx.Err() != nil {
			return nil, q.failure(ctx, err)
		}
	}
}

// await waits until the place can be held; alone says that nobody else was in the queue.
func (p *place) await(ctx context.Context, alone bool) error {
	if !alone {
		if err := p.contend(ctx); err != nil {
			if errors.Is(err, errGone) {
				p.forget()
			}
			return err
		}
	}
	return p.depend(ctx)
}

// anew enters the queue in the session e of the moment, giving up old in the same
// transaction if it belongs to that session.
func (q *queue) anew(ctx context.Context, old *place) (e *zkconn.Epoch, p *place, alone bool, err error) {
	e, err = q.s.client.Epoch(ctx)
	if old != nil && (err != nil || old.e != e) {
		old.leave(0)
		old = nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	p, alone, err = q.enter(ctx, e, old)
	return e, p, alone, err
}

// in runs f in the session of the moment, again in the next one if that ends. Close waits for it, so
// f must run nothing that is the user's.
func (q *queue) in(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	err := ErrClosed
	q.s.within(func() { err = q.inUnjoined(ctx, f) })
	return err
}

// inUnjoined is in, but Close does not wait for it.
func (q *queue) inUnjoined(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	ctx, cancel := q.s.bounded(ctx)
	defer cancel()
	for pace := (node.Pace{}); ; {
		e, err := q.s.client.Epoch(ctx)
		if err == nil {
			err = f(ctx, e)
		}
		switch {
		case err == nil:
			return nil
		case q.s.ctx.Err() != nil:
			return ErrClosed
		case ctx.Err() == nil && errors.Is(err, zkconn.ErrOver):
		default:
			return q.failure(ctx, err)
		}
		_ = pace.Rest(ctx, e)
	}
}

// cleanupGrace is how long a call whose context has ended waits for its cleaning up.
const cleanupGrace = node.Grace

// failure says what an ended attempt returns to its caller.
func (q *queue) failure(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, zkconn.ErrClosed), context.Cause(ctx) == ErrClosed: // see bounded
		return ErrClosed
	case ctx.Err() != nil:
		return contextError(ctx)
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("the servers deny access: check WithAuth and the node's access control list: %w", err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%w: a parent of the path is an ephemeral node, which cannot have children: %w", ErrMisuse, err)
	case errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: the servers refuse the access control list (a digest list for \"auth\" needs WithAuth): %w", ErrMisuse, err)
	}
	return err
}

func (q *queue) owner() Owner {
	return Owner{Host: q.s.host, PID: processID, Name: q.name}
}
