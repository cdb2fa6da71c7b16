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
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// acquisition is one call that locks.
type acquisition struct {
	m     *Mutex
	owner string
	try   bool
	doubt *grant // one that may have been applied, or may yet be
	hold  *Hold
}

// grant is what the transaction of a grant writes, and the entry that it deletes.
type grant struct {
	id     string // of the Hold
	held   held
	before *ended
	entry  string
}

// version is a state as it was read.
type version = record.Version[state]

// errTurn means that the entry in the queue has gone, with its session or by hand.
var errTurn = errors.New("zkdurable: the place in the queue is lost")

func (m *Mutex) lock(ctx context.Context, op, owner string, try bool) (*Hold, error) {
	err := validOwner(owner)
	a := &acquisition{m: m, owner: owner, try: try}
	if err == nil {
		err = m.at.In(ctx, a.run)
	}
	if err != nil {
		if g := a.doubt; g != nil {
			err = m.undo(ctx, err, func(ctx context.Context, e *zkconn.Epoch) error { return m.takeBack(ctx, e, g) })
		}
		return nil, errs.Wrap(op, m.path, err)
	}
	return a.hold, nil
}

// run makes attempts in one session, until one succeeds or the session ends.
func (a *acquisition) run(ctx context.Context, e *zkconn.Epoch) error {
	if a.doubt != nil {
		if err := a.settle(ctx, e); err != nil || a.hold != nil {
			return err
		}
	}
	for pace := (node.Pace{Free: 1}); ; {
		if a.try { // the answer must be as new as the leader's
			if err := record.Synced(ctx, e, a.m.terms.Base); err != nil {
				return err
			}
		}
		v, err := a.m.terms.Read(ctx, e)
		if err == nil {
			err = a.refused(v)
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

// refused is the error if the call must not wait for the end of the present hold.
func (a *acquisition) refused(v version) error {
	switch h := v.T.Hold; {
	case h == nil:
	case h.Owner == a.owner:
		return fmt.Errorf("%w: %s holds already, with token %s; Resume continues a hold", zksync.ErrMisuse, errs.Quote(h.Owner), h.Token)
	case a.try:
		return zksync.ErrNotAcquired
	}
	return nil
}

// queue queues, and takes the lock when its turn has come. v is the state as it was before.
func (a *acquisition) queue(ctx context.Context, v version) error {
	// turn ends with ctx, and when the entry is lost.
	turn, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	get := a.m.q.Obtain
	if a.try {
		get = a.m.q.Try
	}
	t, err := get(ctx, func(*queue.Ticket) { lost(errTurn) })
	if err != nil {
		return err
	}
	err = a.take(ctx, turn, t, v)
	if a.hold == nil {
		t.Leave(node.Grace)
	}
	select {
	case <-t.Epoch.Over():
		if err != nil && ctx.Err() == nil {
			return zkconn.ErrOver
		}
	default:
	}
	return err
}

// take waits until the lock is free, and takes it. Nobody else can take it as long as the entry of t exists.
func (a *acquisition) take(ctx, turn context.Context, t *queue.Ticket, v version) (err error) {
	for pace := (node.Pace{Free: 1}); ; {
		if v.T.Hold != nil {
			if err := a.refused(v); err != nil {
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
		// The lock was not free any more, or it has been free again since. The refusal came from the leader.
		if err := pace.Rest(turn, t.Epoch); err != nil {
			return err
		}
		if v, err = a.m.terms.Latest(turn, t.Epoch); err != nil {
			return err
		}
	}
}

// ends waits for the end of the hold of v, and returns the state after it.
func (m *Mutex) ends(ctx context.Context, e *zkconn.Epoch, v version) (version, error) {
	token := v.T.Hold.Token
	if err := record.UntilGone(ctx, e, m.holdNode(token), 0, nil); err != nil {
		return v, err
	}
	// This session has read the state of the hold, and then seen that its node is gone. It never reads older data
	// than that. One transaction ends a hold and writes that down. So if the base node says that the hold lasts,
	// somebody has removed its node by hand, and nobody holds.
	next, err := m.terms.Read(ctx, e)
	if err == nil && next.T.is(token) {
		next.T = state{Before: &ended{Token: token, Owner: next.T.Hold.Owner}}
	}
	return next, err
}

// grant takes the lock, which was free in v.
func (a *acquisition) grant(ctx context.Context, t *queue.Ticket, v version) error {
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
		t.Forget()
		a.hold, err = m.newHold(g.id, g.held, g.before, 0, e)
	case errs.Ambiguous(err):
		a.doubt = g
	default:
		t.SetReplacing(false)
	}
	if record.RefusedAt(err, 0, zk.ErrNoNode) || err == zk.ErrNoNode {
		return errTurn // the entry, or the whole record
	}
	return err
}

// opener is the data of the node of a hold that the Hold with this id has opened. openerID reads the id.
func (m *Mutex) opener(id string) []byte { return m.at.Content(node.Content{ID: id}).Encode() }
func openerID(data []byte) string        { return node.Decode(data).ID }

// settle finds out whether the lock was granted in a session that has ended.
func (a *acquisition) settle(ctx context.Context, e *zkconn.Epoch) error {
	g := a.doubt
	granted, err := a.m.granted(ctx, e, g)
	if err != nil {
		return err
	}
	a.doubt = nil
	if granted {
		a.hold, err = a.m.newHold(g.id, g.held, g.before, 0, nil)
	}
	return err
}

// granted reports whether the hold of g lasts. It waits until the entry is gone, without which the servers refuse the
// transaction of the grant.
func (m *Mutex) granted(ctx context.Context, e *zkconn.Epoch, g *grant) (bool, error) {
	// After the sync the server knows the entry, or knows that it is gone.
	if err := record.Synced(ctx, e, m.terms.Base); err != nil {
		return false, err
	}
	if err := record.UntilGone(ctx, e, g.entry, 0, nil); err != nil {
		return false, err
	}
	v, _, err := m.terms.Peek(ctx, e)
	return v.T.is(g.held.Token), err
}

// takeBack ends the hold of a grant that nobody was told of, if there is one, and nobody has resumed it.
func (m *Mutex) takeBack(ctx context.Context, e *zkconn.Epoch, g *grant) error {
	granted, err := m.granted(ctx, e, g)
	if err != nil || !granted {
		return err
	}
	err = m.free(ctx, e, g.held.Token, 0, g.before, new(bool))
	if record.Conflict(err) {
		return nil // it was broken or resumed meanwhile
	}
	return err
}
