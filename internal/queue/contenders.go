package queue

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// Standing is whether a contender holds or waits.
type Standing string

// What a contender does.
const (
	Held    Standing = "held"
	Waiting Standing = "waiting"
)

// Contender is one entry of a queue, for people and monitoring. It shows
// what was true at the server that was asked, at the time when it was asked.
type Contender struct {
	Position int        // from 0, in the order of the queue
	Kind     Kind       // what it asks for
	State    Standing   // Held or Waiting
	Owner    node.Owner // who says it is its owner
	Session  int64      // the ZooKeeper session it belongs to
	Since    time.Time  // when it queued, by the owner's clock if the node tells it, else by the server's
	Token    node.Token // the fencing token of its grant, without local hand-overs
	Node     string     // the path of its node
	ID       string     // of a candidate of an election
	Permits  int64      // that an entry of a semaphore asks for; else 0
	Under    string     // the tokens that its owner held when it queued: see [node.FormatUnder]
}

// Contenders lists the entries in order. Of each it says whether it holds, if there are capacity permits.
func (q *Queue) Contenders(ctx context.Context, e *zkconn.Epoch, capacity int64) ([]Contender, error) {
	entries, err := q.List(ctx, e)
	if err != nil {
		return nil, err
	}
	return q.Describe(ctx, e, entries, func() (int64, error) { return capacity, nil })
}

// Describe reads the entries' nodes, and after them the number of permits. It leaves
// out the entries that have left meanwhile, and says of the others whether they hold.
func (q *Queue) Describe(ctx context.Context, e *zkconn.Epoch, entries []Entry, capacity func() (int64, error)) ([]Contender, error) {
	list := make([]Contender, len(entries))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	for i, en := range entries {
		g.Go(func() (err error) {
			list[i], _, err = q.Contender(gctx, e, en)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	permits, err := capacity()
	if err != nil {
		return nil, err
	}
	var ahead []Entry
	left := make([]Contender, 0, len(list))
	for i, c := range list {
		if c.Node == "" {
			continue // it has left meanwhile
		}
		c.Position, c.State = len(left), Waiting
		if len(PolicyFor(c.Kind, permits)(ahead, entries[i])) == 0 {
			c.State = Held
		}
		ahead = append(ahead, entries[i])
		left = append(left, c)
	}
	return left, nil
}

// Contender reads one entry's node. It reports false if the node has gone.
func (q *Queue) Contender(ctx context.Context, e *zkconn.Epoch, en Entry) (Contender, bool, error) {
	path := q.Dir + "/" + en.Name
	data, st, err := e.Get(ctx, path)
	if errors.Is(err, zk.ErrNoAuth) { // we may not read its data, but may know that it exists
		var there bool
		if st, there, err = e.Exists(ctx, path); err == nil && !there {
			err = zk.ErrNoNode
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return Contender{}, false, nil
	}
	if err != nil {
		return Contender{}, false, err
	}
	c := node.Decode(data)
	token, since := c.Token, c.Since // the token of a lease that the node took over
	if token.IsZero() {
		token.Zxid = st.Czxid
	}
	if since.IsZero() {
		since = time.UnixMilli(st.Ctime)
	}
	permits := int64(0)
	if en.Kind == KindPermit {
		permits = en.Weight
	}
	return Contender{
		Kind: en.Kind, Owner: c.Owner, Session: st.EphemeralOwner, Since: since,
		Token: token, Node: q.Shown + "/" + en.Name, ID: node.Printable(c.ID), Permits: permits, Under: c.Under,
	}, true, nil
}
