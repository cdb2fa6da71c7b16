package zksync

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

var processID = os.Getpid()

// Standing is whether a contender holds or waits.
type Standing string

// What a contender does.
const (
	Held    Standing = "held"
	Waiting Standing = "waiting"
)

// Contender is one entry of a queue, for people and monitoring. It was true at the
// server that was asked, at the time it was asked.
type Contender struct {
	Position int       // from 0, in the order of the queue
	Kind     Kind      // what it asks for
	State    Standing  // Held, or Waiting
	Owner    Owner     // who says it is its owner
	Session  int64     // the ZooKeeper session it belongs to
	Since    time.Time // when it queued; by the owner's clock if it said so, else the server's
	Token    Token     // the fencing token of its grant, without local hand-overs
	Node     string    // the path of its node
}

// Contenders lists the entries of the queue at path in order, those of other
// libraries included. The path of a semaphore stands for the queue below it. A path that
// does not exist has no contenders. It blocks for one listing and one round of reads, through disconnects,
// until ctx ends or the session is closed.
func Contenders(ctx context.Context, s *Session, path string) ([]Contender, error) {
	wrap := func(err error) ([]Contender, error) {
		return nil, &Error{Op: "list", Path: path, Err: err}
	}
	if s == nil {
		return wrap(errNoSession)
	}
	if err := validatePath(path); err != nil {
		return wrap(err)
	}
	q := &queue{s: s, dir: s.full(path)}
	var list []Contender
	err := q.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		at, entries, err := q.locate(ctx, e)
		if err == nil {
			list, err = at.describe(ctx, e, entries)
		}
		return err
	})
	if err != nil {
		return wrap(err)
	}
	return list, nil
}

// permitQueue is where the queue of a semaphore is, below its path.
const permitQueue = "/queue"

// locate lists the queue of the lock at q's directory: the one there, or else, because the
// lock may be a semaphore, the one below. It returns the queue that the entries are in.
func (q *queue) locate(ctx context.Context, e *zkconn.Epoch) (*queue, []entry, error) {
	entries, err := q.list(ctx, e)
	if err != nil || len(entries) > 0 {
		return q, entries, err
	}
	below := &queue{s: q.s, dir: q.dir + permitQueue}
	entries, err = below.list(ctx, e)
	return below, entries, err
}

// list reads the entries in order; none if there is no directory.
func (q *queue) list(ctx context.Context, e *zkconn.Epoch) ([]entry, error) {
	names, _, err := e.Children(ctx, q.dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err == nil {
		err = q.rival.refuse(names)
	}
	if err != nil {
		return nil, err
	}
	return q.entries(ctx, e, names, nil)
}

func (q *queue) contenders(ctx context.Context, e *zkconn.Epoch) ([]Contender, error) {
	entries, err := q.list(ctx, e)
	if err != nil {
		return nil, err
	}
	return q.describe(ctx, e, entries)
}

// describe reads the entries' nodes.
func (q *queue) describe(ctx context.Context, e *zkconn.Epoch, entries []entry) ([]Contender, error) {
	list := make([]Contender, len(entries))
	present := make([]bool, len(entries))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	for i, en := range entries {
		g.Go(func() error {
			c, there, err := q.contender(gctx, e, en)
			list[i], present[i] = c, there
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	capacity, err := q.capacity(ctx, e, entries)
	if err != nil {
		return nil, err
	}
	return standing(entries, list, present, capacity), nil
}

// contender reads one entry's node.
func (q *queue) contender(ctx context.Context, e *zkconn.Epoch, en entry) (Contender, bool, error) {
	node := q.dir + "/" + en.name
	data, st, err := e.Get(ctx, node)
	if errors.Is(err, zk.ErrNoAuth) { // its data is nobody's business, its existence is
		var there bool
		if st, there, err = e.Exists(ctx, node); err == nil && !there {
			err = zk.ErrNoNode
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return Contender{}, false, nil
	}
	if err != nil {
		return Contender{}, false, err
	}
	owner, since := decodeOwner(data)
	token := decodeExtras(data).token // of a lease that the node took over
	if token.IsZero() {
		token.Zxid = st.Czxid
	}
	if since.IsZero() {
		since = time.UnixMilli(st.Ctime)
	}
	return Contender{
		Kind: en.kind, Owner: owner, Session: st.EphemeralOwner, Since: since,
		Token: token, Node: q.s.local(node),
	}, true, nil
}

// standing drops who has left meanwhile, and says of the others who holds.
func standing(entries []entry, list []Contender, present []bool, capacity int64) []Contender {
	var ahead []entry
	left := make([]Contender, 0, len(list))
	for i, en := range entries {
		if !present[i] {
			continue
		}
		c := list[i]
		c.Position = len(left)
		c.State = Waiting
		if len(policyFor(en.kind, capacity)(ahead, en)) == 0 {
			c.State = Held
		}
		ahead = append(ahead, en)
		left = append(left, c)
	}
	return left
}

// capacity is how many permits there are in a queue, as far as entries ask for any.
func (q *queue) capacity(ctx context.Context, e *zkconn.Epoch, entries []entry) (int64, error) {
	if q.terms != nil {
		return q.terms.capacity(), nil
	}
	t, err := q.storedTerms(ctx, e, entries)
	return t.capacity(), err
}

// storedTerms reads what all agreed on who queue here.
func (q *queue) storedTerms(ctx context.Context, e *zkconn.Epoch, entries []entry) (storedTerms, error) {
	if !slices.ContainsFunc(entries, func(en entry) bool { return en.kind == KindPermit }) {
		return unlimited, nil
	}
	data, _, err := e.Get(ctx, parentOf(q.dir))
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return storedTerms{}, err
	}
	var t storedTerms
	if json.Unmarshal(data, &t) != nil || t.capacity() <= 0 {
		return unlimited, nil
	}
	return t, nil
}

// unlimited are the terms where they are not known.
var unlimited = storedTerms{Permits: 1<<63 - 1}
