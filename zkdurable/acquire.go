package zkdurable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// attempt is one call that gets a Hold.
type attempt struct {
	m     *Mutex
	owner string
	hold  *Hold
	undo  func(ctx context.Context, e *zkconn.Epoch) error // nil unless a request of unknown outcome may have got it
}

// obtain lets run get a.hold. If the call fails, obtain undoes what it may have done, and waits briefly for that.
func (a *attempt) obtain(ctx context.Context, op string, run func(context.Context, *zkconn.Epoch) error) (*Hold, error) {
	err := valid("owner's name", a.owner, 1, maxOwner)
	if err == nil {
		if err = a.m.at.Run(ctx, "", run); err == nil {
			return a.hold, nil
		}
	}
	undone := make(chan error, 1)
	if a.undo != nil && a.m.at.Spawn(func() { undone <- a.m.at.Run(context.Background(), "", a.undo, session.Joined) }) {
		select {
		case failed := <-undone:
			if failed == nil && ctx.Err() != nil {
				a.undo, err = nil, errs.OfContext(ctx)
			}
		case <-time.After(node.Grace):
		}
	}
	return nil, a.m.at.Named(op, errs.InDoubt(err, a.undo != nil))
}

// acquisition is an attempt that locks.
type acquisition struct {
	attempt
	try   bool
	doubt *grant // may have been applied, or may yet be
}

// grant is what the transaction of a grant writes, and the entry in the queue that it deletes.
type grant struct {
	id     string // of the Hold
	held   held
	before *ended
	entry  string
}

// errTurn means that the entry in the queue is gone: its session has ended, or another program has removed it.
var errTurn = errors.New("zkdurable: the place in the queue is lost")

// run makes attempts in one session, until one succeeds or the session ends.
func (a *acquisition) run(ctx context.Context, e *zkconn.Epoch) error {
	if a.doubt != nil {
		if err := a.settle(ctx, e); err != nil || a.hold != nil {
			return err
		}
	}
	for pace := (node.Pace{Free: 1}); ; {
		read := a.m.terms.ReadOrMake
		if a.try {
			read = a.m.terms.Latest
		}
		v, err := read(ctx, e)
		if err == nil {
			err = a.refused(ctx, e, v)
		}
		if err == nil {
			err = a.queue(ctx, v)
		}
		if !errors.Is(err, errTurn) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// refused is the error if the call must not wait until the hold of v ends.
func (a *acquisition) refused(ctx context.Context, e *zkconn.Epoch, v record.Version[state]) error {
	switch h := v.T.Hold; {
	case h == nil:
	case h.Owner == a.owner:
		// This server may lag, and another program may have removed the node of the hold.
		if err := record.Synced(ctx, e, a.m.terms.Base); err != nil {
			return err
		}
		if _, lasts, err := e.Exists(ctx, a.m.holdNode(h.Token)); err != nil || !lasts {
			return err
		}
		return errs.Misuse("%s holds already, with token %s; Resume continues a hold", errs.Quote(h.Owner), h.Token)
	case a.try:
		return zksync.ErrNotAcquired
	}
	return nil
}

// queue queues, and takes the lock when it is the first. v is the state before.
func (a *acquisition) queue(ctx context.Context, v record.Version[state]) error {
	turn, lost := context.WithCancelCause(ctx) // turn also ends when the entry is lost
	defer lost(nil)
	get := a.m.q.Obtain
	if a.try {
		get = a.m.q.Try
	}
	t, err := get(ctx, func(*queue.Ticket) { lost(errTurn) })
	if errors.As(err, new(*node.Refused)) {
		return errTurn // the record was removed
	}
	if err != nil {
		return err
	}
	err = a.take(ctx, turn, t, v)
	if ctx.Err() == nil && turn.Err() != nil && errors.Is(err, turn.Err()) {
		err = errTurn
	}
	if a.undo != nil {
		t.Leave(0) // undo waits for that
	} else if a.hold == nil {
		t.Leave(node.Grace)
	}
	if err != nil && ctx.Err() == nil && t.Epoch.Cause() != nil {
		return zkconn.ErrOver
	}
	return err
}

// take waits until the lock is free, and takes it. While the entry of t exists, no other process can take it.
func (a *acquisition) take(ctx, turn context.Context, t *queue.Ticket, v record.Version[state]) (err error) {
	for pace := (node.Pace{Free: 1}); ; {
		if v.T.Hold != nil {
			if err := a.refused(turn, t.Epoch, v); err != nil {
				return err
			}
			if v, err = a.m.ends(turn, t.Epoch, v); err != nil {
				return err
			}
			continue
		}
		err := a.grant(ctx, t, v)
		if !record.RefusedAt(err, 1, zk.ErrBadVersion) {
			return err
		}
		// It was held meanwhile. The leader knows that; this server may lag.
		if err := pace.Rest(turn, t.Epoch); err != nil {
			return err
		}
		if v, err = a.m.terms.Latest(turn, t.Epoch); err != nil {
			return err
		}
	}
}

// ends waits until the hold of v ends, and returns the state after it.
func (m *Mutex) ends(ctx context.Context, e *zkconn.Epoch, v record.Version[state]) (record.Version[state], error) {
	token := v.T.Hold.Token
	if err := record.UntilGone(ctx, e, m.holdNode(token), 0, nil); err != nil {
		return v, err
	}
	// This session has seen that the node of the hold is gone. The transaction that ends a hold also writes that to the base
	// node. So if that still has the hold, another program has removed the hold's node, and the lock is free.
	next, err := m.terms.ReadOrMake(ctx, e)
	if err == nil && next.T.is(token) {
		next.T = state{Before: &ended{Token: token, Owner: next.T.Hold.Owner}}
	}
	return next, err
}

// grant takes the lock, which was free in v.
func (a *acquisition) grant(ctx context.Context, t *queue.Ticket, v record.Version[state]) error {
	m, e := a.m, t.Epoch
	g := &grant{id: node.NewUUID(), before: v.T.Before, entry: t.Node}
	g.held = held{Token: node.Token{Zxid: t.Entry.Czxid}, Owner: a.owner, Since: time.Now().UTC().Round(0)}
	t.SetReplacing(true) // the transaction deletes the entry, which is no loss
	_, err := m.at.Apply(ctx, e, m.writers(),
		&zk.DeleteRequest{Path: t.Node, Version: -1},
		&zk.SetDataRequest{Path: m.terms.Base, Data: record.Encode(state{Hold: &g.held, Before: g.before}), Version: v.Number},
		&zk.CreateRequest{Path: m.holdNode(g.held.Token), Data: m.opener(g.id), Acl: m.at.ACL()},
		&zk.CreateRequest{Path: m.openNode(g.held.Token), Data: m.at.Owner(), Acl: m.at.ACL(), Flags: zk.FlagEphemeral})
	switch {
	case err == nil:
		t.End(queue.Replaced, 0)
		a.hold, err = m.newHold(g.id, g.held, g.before, 0, e)
	case errs.Ambiguous(err):
		a.doubt, a.undo = g, func(ctx context.Context, e *zkconn.Epoch) error { return m.takeBack(ctx, e, g) }
	default:
		t.SetReplacing(false)
	}
	if record.RefusedAt(err, 0, zk.ErrNoNode) || err == writers.ErrNoDir {
		return errTurn // the entry, or the whole record
	}
	return err
}

// opener is the data of the node of a hold that the Hold with this id has opened.
func (m *Mutex) opener(id string) []byte { return m.at.Content(node.Content{ID: id}).Encode() }

// settle finds out whether the lock was granted in a session that has ended.
func (a *acquisition) settle(ctx context.Context, e *zkconn.Epoch) error {
	g := a.doubt
	granted, err := a.m.granted(ctx, e, g)
	if err != nil {
		return err
	}
	if a.doubt, a.undo = nil, nil; granted {
		a.hold, err = a.m.newHold(g.id, g.held, g.before, 0, nil)
	}
	return err
}

// granted reports whether the hold of g lasts. It waits until the entry is gone: then the servers refuse the transaction of the
// grant, if it is still on its way.
func (m *Mutex) granted(ctx context.Context, e *zkconn.Epoch, g *grant) (bool, error) {
	if err := record.Synced(ctx, e, m.terms.Base); err != nil {
		return false, err
	}
	if err := record.UntilGone(ctx, e, g.entry, 0, nil); err != nil {
		return false, err
	}
	v, _, err := m.terms.Peek(ctx, e)
	return err == nil && v.T.is(g.held.Token), err
}

// takeBack ends the hold of a grant that no caller knows of, if there is one, and no process has resumed it.
func (m *Mutex) takeBack(ctx context.Context, e *zkconn.Epoch, g *grant) error {
	if granted, err := m.granted(ctx, e, g); err != nil || !granted {
		return err
	}
	return undone(m.free(ctx, e, g.held.Token, 0, g.before, new(bool)))
}

// resumption is an attempt that resumes.
type resumption struct {
	attempt
	id string // of the Hold
}

// run looks for the owner's hold and opens it. After several refusals it leaves the hold to faster processes.
func (r *resumption) run(ctx context.Context, e *zkconn.Epoch) error {
	m, pace := r.m, node.Pace{Free: 1}
	for range 5 {
		v, _, err := m.terms.Ask(ctx, e)
		if err != nil {
			return err
		}
		h := v.T.Hold
		if h == nil || h.Owner != r.owner {
			break
		}
		data, st, err := e.Get(ctx, m.holdNode(h.Token))
		if err == nil && node.Decode(data).ID == r.id { // a request of an earlier session has opened it
			r.undo = nil
			r.hold, err = m.newHold(r.id, *h, v.T.Before, st.Version, nil)
			return err
		}
		unknown := false
		if err == nil {
			err = m.openAs(ctx, e, h.Token, r.id, st.Version, &unknown)
		}
		switch {
		case err == nil:
			r.undo = nil
			r.hold, err = m.newHold(r.id, *h, v.T.Before, zkconn.NextVersion(st.Version), e)
			return err
		case unknown:
			r.undo = func(ctx context.Context, e *zkconn.Epoch) error { return r.close(ctx, e, h.Token, st.Version, data) }
			return err
		case record.RefusedAt(err, 1, zk.ErrNodeExists):
			return r.opened(ctx, e, h.Token)
		case !record.Conflict(err) && !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
	return zksync.ErrNotAcquired
}

// opened is the refusal of a hold that another process has open.
func (r *resumption) opened(ctx context.Context, e *zkconn.Epoch, token node.Token) error {
	data, st, err := e.Get(ctx, r.m.openNode(token))
	who := "another process"
	switch {
	case err == nil && st.EphemeralOwner == e.ID():
		who = "this session"
	case err == nil:
		who = called(node.Decode(data).Owner)
	case !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth):
		return err
	}
	return fmt.Errorf("%w: %s has the hold of %s open", zksync.ErrNotAcquired, who, errs.Quote(r.owner))
}

// openAs opens a hold whose node has this version, for the Hold with this id.
func (m *Mutex) openAs(ctx context.Context, e *zkconn.Epoch, token node.Token, id string, version int32, doubt *bool) error {
	return m.apply(ctx, e, doubt,
		&zk.SetDataRequest{Path: m.holdNode(token), Data: m.opener(id), Version: version},
		&zk.CreateRequest{Path: m.openNode(token), Data: m.at.Owner(), Acl: m.at.ACL(), Flags: zk.FlagEphemeral})
}

// close undoes a request of unknown outcome that may have opened the hold, whose node had this version and this data, or may
// yet do so.
func (r *resumption) close(ctx context.Context, e *zkconn.Epoch, token node.Token, version int32, data []byte) error {
	m, path := r.m, r.m.holdNode(token)
	// This makes a new version, so the servers refuse a request that is still on its way.
	err := m.apply(ctx, e, new(bool), &zk.SetDataRequest{Path: path, Data: data, Version: version})
	if !record.RefusedAt(err, 0, zk.ErrBadVersion) {
		return undone(err)
	}
	if err := record.Synced(ctx, e, m.terms.Base); err != nil {
		return err
	}
	data, st, err := e.Get(ctx, path)
	if err == nil && node.Decode(data).ID == r.id {
		err = m.apply(ctx, e, new(bool), &zk.CheckVersionRequest{Path: path, Version: st.Version},
			&zk.DeleteRequest{Path: m.openNode(token), Version: -1})
	}
	return undone(err)
}

// undone is err, unless it says that the hold has changed, so that there is nothing to undo.
func undone(err error) error {
	if record.Conflict(err) || errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
