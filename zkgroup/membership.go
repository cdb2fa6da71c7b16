package zkgroup

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Membership is the part of a process in a group. It is safe for use by many goroutines.
type Membership struct {
	g  *Group
	id string
	p  *presence.Presence
}

// taken is the error if the node of another member with this ID stays.
func taken(id string) func(here bool) error {
	return func(here bool) error {
		if here {
			return fmt.Errorf("%w: this session has a member with the ID %s already", errs.ErrMisuse, errs.Quote(id))
		}
		return fmt.Errorf("%w, %w: another session has a member with the ID %s; choose another ID, or try again if its process has ended",
			errs.ErrMisuse, errs.ErrNotAcquired, errs.Quote(id))
	}
}

// Join makes this process a member, until Leave or Close. If the ZooKeeper session ends, or the node is removed, the process joins
// again with its last data.
//
// It blocks until the servers answer or ctx ends. After an error the process is no member. If another session has a member with this
// ID, perhaps of a killed process, Join waits for its end, for at most one and a half timeouts of this session or the other, on one
// connection. Then the error is zksync.ErrMisuse and zksync.ErrNotAcquired; if ctx ends before, also that of ctx.
// If this session has the member, or the ID is malformed, it is zksync.ErrMisuse.
//
// It costs two requests, and more at the first use.
func (g *Group) Join(ctx context.Context, me Member) (*Membership, error) {
	m, err := g.checked().join(ctx, me)
	return m, errs.Wrap("join", g.at.Path, err)
}

func (g *Group) join(ctx context.Context, me Member) (*Membership, error) {
	if err := g.at.Misuse(); err != nil {
		return nil, err
	}
	if err := checkID(me.ID); err != nil {
		return nil, err
	}
	if err := g.fits(me.ID, me.Data); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errs.OfContext(ctx)
	}
	m := &Membership{g: g, id: me.ID}
	m.p = &presence.Presence{At: g.at, Node: g.member(me.ID), Data: bytes.Clone(me.Data), Enter: m.enter, Apply: g.applyOn, Lifetime: g.lifetime, Taken: taken(me.ID)}
	if err := m.p.Start(); err != nil {
		return nil, err
	}
	if _, err := m.p.There(ctx); err != nil {
		m.p.GiveUp()
		if m.p.Waited() && ctx.Err() != nil {
			err = fmt.Errorf("%w, %w: there is a member with the ID %s, whose session has not ended: %w", errs.ErrMisuse, errs.ErrNotAcquired, errs.Quote(me.ID), err)
		}
		return nil, err
	}
	return m, nil
}

// fits refuses data for which a request has no room.
func (g *Group) fits(id string, data []byte) error {
	if len(data)+2*len(g.member(id))+record.ACLSize(g.at.ACL())+512 > record.MaxTransaction {
		return fmt.Errorf("%w: %d bytes of data do not fit into a request", errs.ErrMisuse, len(data))
	}
	return nil
}

// enter makes the member's node.
func (m *Membership) enter(ctx context.Context, e *zkconn.Epoch, data []byte) error {
	if err := m.g.known(ctx, e); err != nil {
		return err
	}
	for pace, more := (node.Pace{Free: 1, First: 20 * time.Millisecond}), 5; ; more-- {
		err := m.g.apply(ctx, e, m.g.create(m.p.Node, data, zk.FlagEphemeral))
		switch {
		case record.RefusedAt(err, 0, zk.ErrNodeExists):
			return presence.ErrTaken
		case record.RefusedAt(err, 0, zk.ErrNoNode):
			err = errRemoved
		}
		if err != errRemoved || more == 0 {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil { // perhaps its nodes are being removed one after the other
			return err
		}
		if _, err := m.g.terms.Read(ctx, e); err != nil { // creates the group again if all its nodes were removed
			return err
		}
	}
}

// ID is the member's ID.
func (m *Membership) ID() string { return m.id }

// Lost is closed when the process is not a member any more as far as it knows: the session has ended or can no longer be proved
// alive, somebody has removed the member's node, or Leave or Close was called. When the process has joined again, Lost returns another channel. It does not block.
//
// It is closed before the servers can end the session. So for others this process leaves after it was told, if it runs at all then.
func (m *Membership) Lost() <-chan struct{} { return m.p.Lost() }

// SetData changes the data of the member. Each call is one change, and the changes of several goroutines come one after the
// other. It blocks until the servers answer, or until the process has joined again in the next session with the new data, or ctx ends. After an error
// the new data may be there, or be there in the next session: the error satisfies zksync.Ambiguous. After Leave it is zksync.ErrReleased. It
// costs two requests: the change, and a new watch.
func (m *Membership) SetData(ctx context.Context, data []byte) error {
	err := m.g.fits(m.id, data)
	if err == nil {
		next := bytes.Clone(data)
		err = m.p.Set(ctx, func() []byte { return next })
	}
	return errs.Wrap("set-data", m.g.at.Path, err)
}

// Leave ends the membership. It blocks until the servers confirm, or ctx ends. Then the member's node is removed as soon
// as the connection allows. If the servers refuse to remove it, the error says why; it is removed when they allow it, or with the session.
// Without a session that is alive there is no node, and Leave does not wait. A second call does the same. It costs one request.
func (m *Membership) Leave(ctx context.Context) error {
	return errs.Wrap("leave", m.g.at.Path, m.p.Leave(ctx))
}
