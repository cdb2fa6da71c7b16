package zksync

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// queue is a directory of ephemeral sequential nodes, one per entry: the one
// primitive under everything else. See DESIGN in docs/layout.md for the nodes.
//
// The protocol goes back to the lock recipe of the ZooKeeper documentation. The
// one-request entry (a transaction that also writes to the directory, so that its
// Stat comes back) and the rule that the set ahead only shrinks are what make it
// cheaper; the arguments stand beside the lines that rely on them.
type queue struct {
	s      *Session
	dir    string // on the servers, chroot included
	kind   Kind
	weight int64
	grant  policy
	acl    []zk.ACL
	name   string

	// readOnlyDir is set once the servers refused to let us write the directory's
	// data. Then an entry is a plain create, and a listing tells what the
	// transaction's Stat would have told.
	readOnlyDir atomic.Bool
}

// place is an entry of ours in a queue. It lives and dies with one epoch.
type place struct {
	q     *queue
	e     *zkconn.Epoch
	self  entry // with its czxid, the fencing token
	node  string
	known map[string]int64 // czxids of entries, where they had to be asked for

	hook   atomic.Pointer[zkconn.LossHook]
	unseen bool        // it was not alone when it entered, and no listing has shown the queue since
	gone   atomic.Bool // the place is lost: nothing may be granted on it any more
}

// errGone means that our own node vanished while the session lived: somebody
// deleted it. That is a loss of the place, never a grant.
var errGone = errors.New("zksync: own node was deleted by somebody else")

// acquire enters the queue and waits until the entry is granted. Through
// disconnects it keeps its place, after the loss of the session it queues anew at
// the tail. It returns the error of ctx, or one that trying again would not mend.
// Whatever it returns, no entry is left behind other than that of the place
// returned: what cannot be removed at once is left to the reaper. old, if not nil,
// is a granted place that is given up in the same transaction; entered, if not nil,
// is one that waits already.
func (q *queue) acquire(ctx context.Context, old, entered *place) (*place, error) {
	for {
		p, alone, err := entered, false, error(nil)
		if p == nil {
			p, alone, err = q.anew(ctx, old)
		}
		old, entered = nil, nil
		if err == nil && !alone {
			if err = p.contend(ctx); err != nil {
				p.leave(cleanupGrace)
			}
		}
		switch {
		case err == nil && p.e.Valid():
			return p, nil
		case err == nil:
			p.leave(0)
		case errors.Is(err, errGone), errors.Is(err, zkconn.ErrOver):
			q.s.logger.Warn("lost the place in a queue, queueing anew", "path", q.s.local(q.dir), "cause", err)
		default:
			return nil, q.failure(ctx, err)
		}
	}
}

// anew enters the queue in the session of the moment, giving up old in the same
// transaction if it belongs to that session.
func (q *queue) anew(ctx context.Context, old *place) (p *place, alone bool, err error) {
	e, err := q.s.client.Epoch(ctx)
	if old != nil && (err != nil || old.e != e) {
		old.leave(0)
		old = nil
	}
	if err != nil {
		return nil, false, err
	}
	return q.enter(ctx, e, old)
}

// cleanupGrace is how long a call whose context has ended waits for the removal of
// its node: with a healthy connection nothing is left when it returns, and its
// deadline is not overrun by more.
const cleanupGrace = 50 * time.Millisecond

// failure says what an ended attempt returns to its caller.
func (q *queue) failure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return contextError(ctx)
	case errors.Is(err, zkconn.ErrClosed):
		return ErrClosed
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("the servers deny access: check WithAuth and the node's access control list: %w", err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%w: a parent of the path is an ephemeral node, which cannot have children: %w", ErrMisuse, err)
	case errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%w: the servers refuse the access control list (a digest list for \"auth\" needs WithAuth): %w", ErrMisuse, err)
	}
	return err
}

// enter puts an entry at the tail of the queue: one round trip. It reports alone
// when the entry is the only child of the directory, which grants any kind. old is
// given up whatever comes.
func (q *queue) enter(ctx context.Context, e *zkconn.Epoch, old *place) (p *place, alone bool, err error) {
	for pause := time.Duration(0); ; {
		if err := e.Await(ctx); err != nil {
			if old != nil {
				old.leave(0)
			}
			return nil, false, err
		}
		p, alone, err := q.tryEnter(ctx, e, old)
		if old != nil && !old.gone.Load() {
			old.leave(0) // only a clean answer says that the transaction removed it
		}
		old = nil
		if err == nil && p != nil {
			return p, alone, nil
		}
		if err != nil && !errors.Is(err, errAgain) {
			return nil, false, err
		}
		// Usually the connection was lost and Await will wait. A server that keeps
		// answering with errors that mean nothing to us must not be asked in a spin.
		if pause > 0 {
			if err := sleep(ctx, e, pause); err != nil {
				return nil, false, err
			}
		}
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
	}
}

// errAgain means that nothing was entered and trying again makes sense.
var errAgain = errors.New("zksync: try again")

// tryEnter makes one attempt, under a uuid of its own.
func (q *queue) tryEnter(ctx context.Context, e *zkconn.Epoch, old *place) (*place, bool, error) {
	uuid := newUUID()
	prefix := entryPrefix(q.kind, uuid, q.weight)
	data := encodeOwner(q.owner(), time.Now())
	create := &zk.CreateRequest{
		Path: q.dir + "/" + prefix, Data: data, Acl: q.acl,
		Flags: zk.FlagEphemeral | zk.FlagSequence,
	}
	var ops []any
	if old != nil {
		ops = append(ops, &zk.DeleteRequest{Path: old.node, Version: -1})
	}
	at := len(ops)
	ops = append(ops, create)
	if !q.readOnlyDir.Load() {
		ops = append(ops, &zk.SetDataRequest{Path: q.dir, Version: -1})
	}
	call := e.StartMulti(ops...)
	_, ended := call.Wait(ctx, e)
	if !answered(call) {
		q.abandon(e, uuid, call, at) // ctx or the epoch ended first
		return nil, false, ended
	}
	res, err := call.Result() // also if ctx ended at the very same time
	if err == nil {
		if old != nil {
			old.forget()
		}
		return q.entered(ctx, e, uuid, res[at:])
	}
	if errors.Is(err, zkconn.ErrNotSent) {
		return nil, false, errAgain
	}
	// Nobody knows whether the entry exists. While anybody can look, look; and from
	// here on the reaper owns whatever is or will be there, unless we find it.
	if zkconn.Unknown(err) {
		return q.find(ctx, e, uuid)
	}
	refused := &zkconn.TxnError{Index: -1, Err: err}
	errors.As(err, &refused)
	return q.refused(ctx, e, refused, at, uuid)
}

// answered reports whether the outcome of a call is there.
func answered[T any](call *zkconn.Call[T]) bool {
	select {
	case <-call.Done():
		return true
	default:
		return false
	}
}

// entered reads the answer to the transaction. The parent's Stat is that of the
// very moment after our create, because a transaction has one zxid:
//   - NumChildren == 1 means that nobody else is in the queue, and nobody can get
//     ahead of us any more;
//   - Mzxid is the zxid of the transaction, so it is our node's czxid.
func (q *queue) entered(ctx context.Context, e *zkconn.Epoch, uuid string, res []zk.MultiResponse) (*place, bool, error) {
	self, ok := parseEntry(path.Base(res[0].String))
	if !ok || self.uuid != uuid {
		q.abandonPrefix(e, uuid)
		return nil, false, fmt.Errorf("the servers made node %q, which is not what was asked for", res[0].String)
	}
	p := &place{q: q, e: e, self: self, node: q.dir + "/" + self.name, unseen: true}
	alone := false
	if len(res) > 1 && res[1].Stat != nil {
		p.self.czxid = res[1].Stat.Mzxid
		alone = res[1].Stat.NumChildren == 1
		p.unseen = !alone
		if e.Ordered() {
			return p, alone, nil
		}
	}
	// Nobody told the czxid, or whether the create ran in the session it was meant for.
	if err := p.stat(ctx); err != nil {
		p.leave(cleanupGrace)
		return nil, false, err
	}
	return p, alone, nil
}

// stat asks for the own node's czxid where no transaction told it, and checks that
// the node belongs to this session.
func (p *place) stat(ctx context.Context) error {
	st, there, err := p.e.Exists(ctx, p.node)
	if err != nil {
		return err
	}
	if !there || st.EphemeralOwner != p.e.ID() {
		return errGone
	}
	p.self.czxid = st.Czxid
	return nil
}

// refused handles a transaction of which nothing was applied. create is the index
// of the create; a deletion may stand before it.
func (q *queue) refused(ctx context.Context, e *zkconn.Epoch, t *zkconn.TxnError, create int, uuid string) (*place, bool, error) {
	switch {
	case t.Index >= 0 && t.Index < create:
		// The old place is gone already. That may be because this very request was
		// applied before (a repeated request), so look before trying again.
		return q.find(ctx, e, uuid)
	case errors.Is(t, zk.ErrNoNode):
		if err := q.makeDir(ctx, e); err != nil {
			return nil, false, err
		}
		return nil, false, errAgain
	case errors.Is(t, zk.ErrNoAuth) && t.Index > create && !q.readOnlyDir.Swap(true):
		return nil, false, errAgain
	case errors.Is(t, zk.ErrSessionExpired):
		return nil, false, zkconn.ErrOver
	}
	return nil, false, t.Err
}

// find looks for an entry whose create got no answer. Sync first: the server that
// we are connected to now may not have heard of a create that another one took,
// while one that is still unapplied by then never will be, because a session that
// moved has its old connection's requests refused.
func (q *queue) find(ctx context.Context, e *zkconn.Epoch, uuid string) (*place, bool, error) {
	p, err := q.lookUp(ctx, e, uuid)
	if err != nil {
		q.abandonPrefix(e, uuid)
		return nil, false, err
	}
	if p == nil {
		return nil, false, errAgain
	}
	return p, false, nil
}

func (q *queue) lookUp(ctx context.Context, e *zkconn.Epoch, uuid string) (*place, error) {
	if err := e.Sync(ctx, q.dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	names, _, err := e.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		self, ok := parseEntry(n)
		if !ok || self.uuid != uuid {
			continue
		}
		p := &place{q: q, e: e, self: self, node: q.dir + "/" + n}
		if err := p.stat(ctx); !errors.Is(err, errGone) {
			return p, err
		}
	}
	return nil, nil
}

// abandon leaves an entry of which only the request is known to the reaper.
func (q *queue) abandon(e *zkconn.Epoch, uuid string, call *zkconn.Call[[]zk.MultiResponse], create int) {
	done := e.Reap(zkconn.Litter{
		Dir: q.dir, Prefix: protectedPrefix + uuid, Pending: call.Done(),
		Outcome: func() (string, bool) {
			res, err := call.Result()
			if err == nil && len(res) == create+2 && res[create+1].Stat != nil && res[create+1].Stat.NumChildren == 1 {
				return res[create].String, false
			}
			if err == nil {
				return "", true // with others there, one may be a twin: see leave
			}
			return "", zkconn.Unknown(err)
		},
	})
	settle(e, done, cleanupGrace)
}

// abandonPrefix leaves an entry that may or may not exist to the reaper.
func (q *queue) abandonPrefix(e *zkconn.Epoch, uuid string) {
	settle(e, e.Reap(zkconn.Litter{Dir: q.dir, Prefix: protectedPrefix + uuid}), cleanupGrace)
}

// leave gives the place up. The node's removal is the reaper's until it is
// confirmed; leave waits for that no longer than grace.
func (p *place) leave(grace time.Duration) {
	p.forget()
	if p.unseen {
		// A request that was applied twice left a twin, which only a listing shows.
		p.e.Reap(zkconn.Litter{Dir: p.q.dir, Prefix: protectedPrefix + p.self.uuid})
	}
	if grace > 0 && p.e.Linked() && p.remove(grace) {
		return
	}
	p.e.Reap(zkconn.Litter{Dir: p.q.dir, Node: p.node})
}

// forget marks the place as given up.
func (p *place) forget() {
	p.gone.Store(true)
	if h := p.hook.Load(); h != nil {
		h.Stop()
	}
}

// remove deletes the node and reports whether the servers confirmed that it is
// gone within d. It is the short way, without the reaper, of a healthy connection.
func (p *place) remove(d time.Duration) bool {
	call := p.e.StartDelete(p.node)
	settle(p.e, call.Done(), d)
	if !answered(call) {
		return false
	}
	_, err := call.Result()
	return err == nil || errors.Is(err, zk.ErrNoNode)
}

// settle waits for done, at most for d, and not beyond the epoch. Without a
// connection there is nothing to wait for.
func settle(e *zkconn.Epoch, done <-chan struct{}, d time.Duration) {
	if d <= 0 || !e.Linked() {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	case <-e.Over():
	}
}

// sleep waits for d, or until ctx or the epoch ends.
func sleep(ctx context.Context, e *zkconn.Epoch, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.Over():
		return zkconn.ErrOver
	}
}

// makeDir creates the directory and its parents, leaf first: mostly only the leaf
// is missing. They are containers, so that empty lock directories disappear.
func (q *queue) makeDir(ctx context.Context, e *zkconn.Epoch) error {
	return makeContainer(ctx, e, q.dir, q.acl)
}

func makeContainer(ctx context.Context, e *zkconn.Epoch, dir string, acl []zk.ACL) error {
	for {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := e.CreateContainer(ctx, dir, nil, acl)
		if zkconn.Unimplemented(err) { // before 3.5
			_, err = e.Create(ctx, dir, nil, 0, acl)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			parent := dir[:strings.LastIndexByte(dir, '/')]
			if parent == "" {
				return err
			}
			if err := makeContainer(ctx, e, parent, acl); err != nil {
				return err
			}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			// Creating it again is harmless; the pause is for a server that keeps
			// answering nonsense.
			if err := sleep(ctx, e, 5*time.Millisecond); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

func (q *queue) owner() Owner {
	return Owner{Host: q.s.host, PID: processID, Name: q.name}
}
