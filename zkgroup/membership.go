package zkgroup

import (
	"bytes"
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Membership is this process in a group.
type Membership struct {
	g  *Group
	id string
	p  *presence.Presence
}

// Join makes this process a member, until Leave or Close, in each ZooKeeper session again. If another session
// has a member with this ID, Join waits for its end, for at most one and a half session timeouts; then the
// error is zksync.ErrMisuse and zksync.ErrNotAcquired.
func (g *Group) Join(ctx context.Context, me Member) (*Membership, error) {
	m, err := g.checked().join(ctx, me)
	return m, g.at.Named("join", err)
}

func (g *Group) join(ctx context.Context, me Member) (*Membership, error) {
	err := g.at.Misuse()
	switch escaped := len(layout.Escape(me.ID)); {
	case err != nil:
	case me.ID == "":
		err = errs.Misuse("a member without an ID")
	case escaped > layout.MaxName:
		err = errs.Misuse("the ID of a member is too long: %d bytes, escaped as in a URL, and at most %d", escaped, layout.MaxName)
	case ctx.Err() != nil:
		err = errs.OfContext(ctx)
	default:
		err = g.fits(me.ID, me.Data)
	}
	if err != nil {
		return nil, err
	}
	m := &Membership{g: g, id: me.ID}
	m.p = &presence.Presence{At: g.at, Node: g.member(me.ID), Data: bytes.Clone(me.Data), Enter: m.enter, Apply: g.applyOn, Lifetime: g.lifetime, Taken: m.taken}
	if err := m.p.Start(); err != nil {
		return nil, err
	}
	if _, err := m.p.There(ctx); err != nil {
		m.p.GiveUp()
		if m.p.Waited() && ctx.Err() != nil {
			err = errs.Misuse("%w: there is a member with the ID %s, whose session has not ended: %w", errs.ErrNotAcquired, errs.Quote(me.ID), err)
		}
		return nil, err
	}
	return m, nil
}

// taken is the error if another member with this ID stays. here means that it is of this session.
func (m *Membership) taken(here bool) error {
	if here {
		return errs.Misuse("this session has a member with the ID %s already", errs.Quote(m.id))
	}
	return errs.Misuse("%w: another session has a member with the ID %s; choose another ID, or try again if its process has ended",
		errs.ErrNotAcquired, errs.Quote(m.id))
}

// fits refuses data for which a request has no room.
func (g *Group) fits(id string, data []byte) error {
	if len(data)+2*len(g.member(id))+record.ACLSize(g.at.ACL())+512 > record.MaxTransaction {
		return errs.Misuse("%d bytes of data do not fit into a request", len(data))
	}
	return nil
}

// enter makes the member's node.
func (m *Membership) enter(ctx context.Context, e *zkconn.Epoch, data []byte) error {
	if err := m.g.know(ctx, e); err != nil {
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
		// Perhaps another program is just removing the nodes of the group one after the other. Once all are gone, Read makes them again.
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
		if _, err := m.g.terms.ReadOrMake(ctx, e); err != nil {
			return err
		}
	}
}

// ID is the member's ID.
func (m *Membership) ID() string { return m.id }

// Lost is closed when the process stops being a member, before other processes can see it leave. When it has
// joined again, Lost returns another channel.
func (m *Membership) Lost() <-chan struct{} { return m.p.Lost() }

// SetData changes the data of the member. Concurrent calls take effect one after the other. After a
// zksync.Ambiguous error the data may be set now or later. After Leave it is zksync.ErrReleased.
func (m *Membership) SetData(ctx context.Context, data []byte) error {
	err := m.g.fits(m.id, data)
	if err == nil {
		next := bytes.Clone(data)
		err = m.p.Set(ctx, func() []byte { return next })
	}
	return m.g.at.Named("set-data", err)
}

// Leave ends the membership. If ctx ends first, the node is removed later.
func (m *Membership) Leave(ctx context.Context) error {
	return m.g.at.Named("leave", m.p.Leave(ctx))
}
