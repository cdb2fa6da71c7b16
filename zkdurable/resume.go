package zkdurable

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// resumption is one call of Resume.
type resumption struct {
	m         *Mutex
	owner, id string
	doubt     *opening // one that may have been applied, or may yet be
	hold      *Hold
}

// opening is a request that opens a hold, whose node had this version and this data.
type opening struct {
	token   node.Token
	version int32
	data    []byte
}

// run looks for the owner's hold and opens it.
func (r *resumption) run(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		v, _, err := r.m.terms.Ask(ctx, e)
		if err != nil {
			return err
		}
		h := v.T.Hold
		if h == nil || h.Owner != r.owner {
			return zksync.ErrNotAcquired
		}
		err = r.open(ctx, e, *h, v.T.Before)
		if !record.Conflict(err) && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// open opens the hold.
func (r *resumption) open(ctx context.Context, e *zkconn.Epoch, h held, before *ended) error {
	m := r.m
	data, st, err := e.Get(ctx, m.holdNode(h.Token))
	if errors.Is(err, zk.ErrNoNode) {
		v, _, err := m.terms.Ask(ctx, e)
		if err == nil && v.T.is(h.Token) { // somebody has removed the node by hand: see ends
			err = zksync.ErrNotAcquired
		} else if err == nil {
			err = record.ErrAgain
		}
		return err
	}
	if err != nil {
		return err
	}
	if openerID(data) == r.id { // a request of an earlier session has opened it
		r.doubt = nil
		r.hold, err = m.newHold(r.id, h, before, st.Version, nil)
		return err
	}
	o, unknown := &opening{h.Token, st.Version, data}, false
	switch err = m.openAs(ctx, e, h.Token, r.id, st.Version, &unknown); {
	case err == nil:
		r.doubt = nil
		r.hold, err = m.newHold(r.id, h, before, st.Version+1, e)
	case unknown:
		r.doubt = o
	case record.RefusedAt(err, 1, zk.ErrNodeExists):
		err = fmt.Errorf("%w: another process has the hold of %q open", zksync.ErrNotAcquired, r.owner)
	}
	return err
}

// openAs opens a hold whose node has this version, for the Hold with this id.
func (m *Mutex) openAs(ctx context.Context, e *zkconn.Epoch, token node.Token, id string, version int32, doubt *bool) error {
	return m.apply(ctx, e, doubt,
		&zk.SetDataRequest{Path: m.holdNode(token), Data: m.opener(id), Version: version},
		&zk.CreateRequest{Path: m.openNode(token), Data: m.at.Owner(), Acl: m.at.ACL(), Flags: zk.FlagEphemeral})
}

// undo leaves the hold to others again, if a request has opened it, and makes sure that none will.
func (r *resumption) undo(ctx context.Context, e *zkconn.Epoch) error {
	m, o := r.m, r.doubt
	for pace := (node.Pace{Free: 1}); ; {
		if err := record.Synced(ctx, e, m.terms.Base); err != nil {
			return err
		}
		data, st, err := e.Get(ctx, m.holdNode(o.token))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case err != nil:
			return err
		case openerID(data) == r.id:
			err = m.apply(ctx, e, new(bool),
				&zk.CheckVersionRequest{Path: m.holdNode(o.token), Version: st.Version},
				&zk.DeleteRequest{Path: m.openNode(o.token), Version: -1})
			if record.RefusedAt(err, 1, zk.ErrNoNode) {
				return nil // it went with its session
			}
		case st.Version == o.version:
			// The request may still be on its way. This makes a new version, so that the servers refuse it.
			err = m.apply(ctx, e, new(bool), &zk.SetDataRequest{Path: m.holdNode(o.token), Data: o.data, Version: o.version})
		default:
			return nil
		}
		if !record.Conflict(err) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}
