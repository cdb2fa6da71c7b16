package zkgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Membership is the part of a process in a group. It is safe for use by many goroutines.
type Membership struct {
	g    *Group
	id   string
	p    *presence.Presence
	turn chan struct{} // has a value while SetData runs

	mu      sync.Mutex
	data    []byte
	count   int // of changes of data
	entered int // the count of which the servers have been told when the node was made last
}

func errSameID(id string) error {
	return fmt.Errorf("%w: another living member has the ID %s", errs.ErrMisuse, errs.Quote(id))
}

// Join makes this process a member, until Leave or Close of the session. If the ZooKeeper session ends, the process joins again in the
// next one, with its last data; also if somebody removes its node by hand.
//
// It blocks until the servers answer or ctx ends; then the process does not become a member. A disconnect or a
// lost session delays it. If there is a member with this ID, Join waits until that is gone, one and a half
// times the session timeout at most: it may be a process that was killed, perhaps this one before a restart, whose session has not ended yet.
// After that, and at once if it is a member of this very session, the error is zksync.ErrMisuse: two living members have one ID. It is also that
// for a malformed ID. If ctx ends during that wait, the error is zksync.ErrMisuse and that of the context.
//
// It costs two requests; the first use of an object costs one more, and the first use of the path some.
func (g *Group) Join(ctx context.Context, me Member) (*Membership, error) {
	m, err := g.join(ctx, me)
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
	m := &Membership{g: g, id: me.ID, data: bytes.Clone(me.Data), turn: make(chan struct{}, 1)}
	m.p = &presence.Presence{At: g.at, Node: g.member(me.ID), Enter: m.enter, Exit: m.exit, Taken: errSameID(me.ID)}
	if err := m.p.Start(); err != nil {
		return nil, err
	}
	if _, err := m.p.There(ctx); err != nil {
		m.p.GiveUp()
		if m.p.Waited() && ctx.Err() != nil {
			err = fmt.Errorf("%w: there is another member with the ID %s: %w", errs.ErrMisuse, errs.Quote(me.ID), err)
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
func (m *Membership) enter(ctx context.Context, e *zkconn.Epoch) error {
	if err := m.g.known(ctx, e); err != nil {
		return err
	}
	m.mu.Lock()
	data, count := m.data, m.count
	m.mu.Unlock()
	err := m.g.apply(ctx, e, m.g.create(m.p.Node, data, zk.FlagEphemeral))
	switch {
	case record.RefusedAt(err, 0, zk.ErrNodeExists):
		return presence.ErrTaken
	case record.RefusedAt(err, 0, zk.ErrNoNode):
		return errRemoved
	case err == nil:
		m.mu.Lock()
		m.entered = count
		m.mu.Unlock()
	}
	return err
}

// exit removes it.
func (m *Membership) exit(ctx context.Context, e *zkconn.Epoch) error {
	err := m.g.apply(ctx, e, &zk.DeleteRequest{Path: m.p.Node, Version: -1})
	if record.RefusedAt(err, 0, zk.ErrNoNode) {
		return nil
	}
	return err
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
	return errs.Wrap("set-data", m.g.at.Path, m.setData(ctx, bytes.Clone(data)))
}

func (m *Membership) setData(ctx context.Context, data []byte) error {
	if err := m.g.fits(m.id, data); err != nil {
		return err
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return errs.OfContext(ctx)
	}
	if m.p.Leaving().Err() != nil {
		return errs.ErrReleased
	}
	m.mu.Lock()
	m.data = data
	m.count++
	count := m.count
	m.mu.Unlock()
	ctx, cancel := m.g.at.Bounded(ctx)
	defer cancel()
	for {
		st, err := m.p.There(ctx)
		if err != nil {
			return errs.MarkAmbiguous(err)
		}
		m.mu.Lock()
		told := m.entered >= count
		m.mu.Unlock()
		if told {
			return nil
		}
		err = m.g.apply(ctx, st.Epoch, &zk.SetDataRequest{Path: m.p.Node, Data: data, Version: -1})
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return errs.MarkAmbiguous(errs.OfContext(ctx))
		case !record.RefusedAt(err, 0, zk.ErrNoNode) && !errors.Is(err, zkconn.ErrOver) && !errors.Is(err, errs.ErrSessionExpired):
			return errs.MarkAmbiguous(err)
		}
		// The process will join again, with these data.
		select {
		case <-st.Lost:
		case <-ctx.Done():
			return errs.MarkAmbiguous(errs.OfContext(ctx))
		}
	}
}

// Leave ends the membership. It blocks until the servers confirm, or ctx ends. Then the member's node is removed as soon
// as the connection allows. Without a session that is alive there is no node, and it does not wait. A second call
// does the same. It costs one request.
func (m *Membership) Leave(ctx context.Context) error {
	return errs.Wrap("leave", m.g.at.Path, m.p.Leave(ctx))
}
