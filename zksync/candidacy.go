package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// candidacy implements door.Candidacy: the queue of an election is that of a mutex,
// and its nodes say more of whoever made them.
type candidacy struct{ g *singles }

// Acquire waits until this candidate leads.
func (c candidacy) Acquire(ctx context.Context) (*Lease, error) {
	return c.g.acquire(ctx, c.g.q, false)
}

// Try leads if nobody else is a candidate.
func (c candidacy) Try(ctx context.Context) (*Lease, error) { return c.g.try(ctx, c.g.q, false) }

// List reads the first candidates in order, at most limit.
func (c candidacy) List(ctx context.Context, e *zkconn.Epoch, limit int) ([]door.Candidate, error) {
	q := c.g.q
	entries, err := q.List(ctx, e)
	if err != nil {
		return nil, err
	}
	var list []door.Candidate
	for _, en := range entries {
		if len(list) == limit {
			break
		}
		path := q.Dir + "/" + en.Name
		data, st, err := e.Get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			continue // has left meanwhile
		}
		if err != nil {
			return nil, err
		}
		x := node.Decode(data)
		if x.ID == "" { // a contender that is none of ours, or a mutex on this path
			x.ID = x.Name
		}
		list = append(list, door.Candidate{
			ID: x.ID, Data: x.Data, Node: path, Session: st.EphemeralOwner, Zxid: st.Czxid,
		})
	}
	return list, nil
}
