package zkelection

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// SetData changes the Data of this candidate while it leads, and for later candidacies. If it has never led,
// the error is zksync.ErrNotAcquired; after the leadership zksync.ErrLost or zksync.ErrReleased.
func (e *Election) SetData(ctx context.Context, data []byte) error {
	return e.made().wrap("set-data", e.setData(ctx, slices.Clone(data)))
}

func (e *Election) setData(ctx context.Context, data []byte) error {
	if err := e.at.Misuse(); err != nil {
		return err
	}
	l := e.leadership()
	switch {
	case e.at.Session.Closing():
		return errs.ErrClosed
	case e.bare:
		return errBare
	case l == nil:
		return errs.ErrNotAcquired
	case l.Err() != nil:
		return l.Err()
	case ctx.Err() != nil:
		return errs.OfContext(ctx)
	}
	both, end := l.Bind(ctx)
	defer end()
	var sent []byte    // the newest; a refusal, too, may be that of a request that arrived twice
	var ambiguous bool // it may have been applied
	for pace := (node.Pace{Free: 1}); ; {
		next, err := e.setOnce(both, l, data, sent)
		if err == nil {
			e.begin(data)
			return nil
		}
		if next != nil {
			sent = next
		}
		ambiguous = ambiguous || zksync.Ambiguous(err)
		if zksync.Ambiguous(err) || zkconn.Unknown(err) || errors.Is(err, zk.ErrBadVersion) {
			err = pace.Rest(both, l.Ticket().Epoch)
		}
		if err == nil && both.Err() == nil {
			continue
		}
		switch {
		case e.at.Session.Closing():
			err = errs.ErrClosed
		case ctx.Err() == nil && l.Err() != nil:
			err = l.Err()
		case ctx.Err() == nil && errors.Is(err, zkconn.ErrOver):
			err = errs.ErrLost // the holder is about to be notified
		default:
			err = node.Reason(ctx, err)
		}
		if ambiguous {
			err = errs.MarkAmbiguous(err)
		}
		return err
	}
}

// setOnce reads the node and writes it, at the version that it has read. If it finds what was sent before, that was applied.
// It returns what it has sent.
func (e *Election) setOnce(ctx context.Context, l *lease.Lease, data, sent []byte) ([]byte, error) {
	p := l.Ticket()
	old, st, err := p.Epoch.Get(ctx, p.Node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		p.End(queue.Removed, 0)
		return nil, errs.ErrLost
	case err != nil:
		return nil, err
	case sent != nil && bytes.Equal(old, sent):
		return sent, nil
	}
	c := node.Decode(old)
	if c.ID != e.self.ID { // somebody else wrote to it
		c = e.content(nil)
	}
	c.Data = data
	next := c.Encode()
	if size := len(next) + record.ACLSize(e.at.ACL()) + len(p.Node) + spare; size > record.MaxTransaction {
		return nil, errs.Misuse("%d bytes do not fit into a node", len(data))
	}
	_, err = l.GuardBare(ctx, []any{&zk.SetDataRequest{Path: e.at.Local(p.Node), Data: next, Version: st.Version}})
	return next, err
}

// spare is more than the rest of the transactions that carry the data takes, with the paths in them.
const spare = 4 << 10

// lead gets a leadership, and remembers it for SetData.
func (e *Election) lead(ctx context.Context, get func(context.Context, func(*queue.Ticket)) (*queue.Ticket, error)) (*lease.Lease, error) {
	e.campaign(1)
	l, err := e.grants.Get(ctx, false, get)
	if err != nil {
		e.campaign(-1)
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.campaigns--
	// Of two campaigns of this Election the one that was granted first may come here last.
	if e.led == nil || e.led.Token().Compare(l.Token()) < 0 {
		e.led = l
	}
	return l, nil
}

func (e *Election) campaign(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.campaigns += n
}

// Healthy returns nil while this candidate leads, or waits in a session that is [zksync.Session.Healthy]. It
// sends nothing.
func (e *Election) Healthy() error {
	if l := e.made().leadership(); l != nil && l.Valid() {
		return nil
	}
	if err := e.at.Misuse(); err != nil {
		return e.wrap("healthy", err)
	}
	e.mu.Lock()
	waits := e.campaigns > 0
	e.mu.Unlock()
	if !waits {
		return e.wrap("healthy", errs.ErrNotAcquired)
	}
	return e.wrap("healthy", e.s.Healthy())
}

func (e *Election) leadership() *lease.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.led
}

// begin has later candidacies begin with data, and data returns what they begin with.
func (e *Election) begin(data []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.self.Data = data
}

func (e *Election) data() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.self.Data
}

// content is that of a candidate's node.
func (e *Election) content(data []byte) node.Content {
	return e.at.Content(node.Content{ID: e.self.ID, Data: data})
}
