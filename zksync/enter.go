package zksync

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

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
