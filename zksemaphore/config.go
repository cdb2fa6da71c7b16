package zksemaphore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// config is the number of permits, on which all users of a semaphore must agree. It is the data of the base node.
//
// What was read holds until its watch reports a change. Events and answers come in the order in which things happened. So
// what the servers answered before such an event, for example a listing, is no newer than the number.
type config struct {
	terms    record.Terms[queue.Permits]
	declared int64 // by our constructor

	mu  sync.Mutex
	now *reading // nil before the first
}

// reading is what was read of the base node.
type reading struct {
	queue.Permits
	e       *zkconn.Epoch
	watch   *zkconn.Watch
	changed context.Context // ended by end, when the base node changed, or may have
	end     context.CancelFunc
}

// free is how many permits the entries of a queue leave.
func (r *reading) free(entries []queue.Entry) int64 {
	free := r.Now()
	for _, e := range entries {
		switch {
		case e.Kind != queue.KindPermit:
		case e.Weight <= free:
			free -= e.Weight
		case r.Ever() > r.Now():
			return 0 // it may hold since there were more
		default:
			return free // it waits, and so do all behind it
		}
	}
	return free
}

// rivals are the nodes of other libraries' semaphores below their path: a directory "leases" of Curator's
// InterProcessSemaphoreV2, entries of a lock of its predecessor, and nodes of kazoo's Semaphore, whose names are
// a uuid without dashes.
var rivals = &queue.Rival{
	Type: layout.Semaphore,
	Node: func(name string) bool {
		uuid, rest := queue.CutUUID(name, queue.BareUUIDLen)
		_, contends := queue.ParseEntry(name)
		return name == "leases" || contends || uuid != "" && rest == ""
	},
	What: "a semaphore of Curator or kazoo, which does not count our permits: both would grant them",
}

// newConfig is the config in a base node on the servers, for a constructor that was given a number of permits.
func newConfig(base string, acl []zk.ACL, declared int64) *config {
	c := &config{declared: declared}
	c.terms.Base, c.terms.ACL, c.terms.Type, c.terms.Keys = base, acl, layout.Semaphore, []string{"permits"}
	c.terms.First = func() (queue.Permits, []string) { return queue.Permits{Declared: declared}, nil }
	c.terms.Beside = c.Founded
	c.terms.Check = func(p queue.Permits) error {
		switch {
		case p.Declared < 0 || p.Now() < 0:
			return errs.Misuse("the base node holds fewer than 0 permits; use another path")
		case p.Declared != declared && p.Now() != declared:
			return errs.Misuse("the number of permits of the semaphore is %d, not %d; use the same number everywhere, or Resize", p.Now(), declared)
		}
		return nil
	}
	return c
}

// Check implements queue.Config: an entry is made only where the number is. If it was made under an old number, it
// grants nothing before the new one is read.
func (c *config) Check() []any {
	return []any{&zk.CheckVersionRequest{Path: c.terms.Base, Version: -1}}
}

// Founded implements queue.Config. It looks which other libraries use the base node: its one child until now may have been
// theirs as well as the queue.
func (c *config) Founded(ctx context.Context, e *zkconn.Epoch) error {
	return rivals.RefuseAt(ctx, e, c.terms.Base)
}

// Learn implements queue.Config.
func (c *config) Learn(ctx context.Context, e *zkconn.Epoch, weight int64) (queue.Policy, error) {
	r, err := c.learn(ctx, e)
	if err == nil && weight > r.Now() {
		err = queue.ErrTooBig
	}
	if err != nil {
		return nil, err
	}
	return queue.WeightedPolicy(r.Now()), nil
}

// Follow implements queue.Config.
func (c *config) Follow(ctx context.Context, e *zkconn.Epoch, weight int64, changed func()) (w *zkconn.Watch, err error) {
	err = record.Insist(ctx, e, func() error {
		if _, err := c.Learn(ctx, e, weight); err != nil {
			return err
		}
		w, err = e.Watch(ctx, c.terms.Base, func(zkconn.Event) { changed() }) // the reading has the same, if it is known
		if errors.Is(err, zk.ErrNoNode) {
			err = node.ErrAgain
		}
		return err
	})
	if err == nil && c.known(e) == nil {
		changed()
	}
	return w, err
}

// blockers is the policy of all requests. While the number is not known it grants nothing: the entry is in its own way.
func (c *config) blockers(ahead []queue.Entry, self queue.Entry) []queue.Entry {
	r := c.known(nil)
	if r == nil {
		return []queue.Entry{self}
	}
	return queue.WeightedPolicy(r.Now())(ahead, self)
}

// known is the last reading if it was made in this session, any if e is nil, and nothing has changed since.
func (c *config) known(e *zkconn.Epoch) *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || e != nil && c.now.e != e || c.now.changed.Err() != nil {
		return nil
	}
	return c.now
}

// learn reads the number, if it is not known: then it is the number at the read, and perhaps no longer. It makes the base
// node if there is none.
func (c *config) learn(ctx context.Context, e *zkconn.Epoch) (*reading, error) {
	if r := c.known(e); r != nil {
		return r, nil
	}
	r := &reading{e: e}
	r.changed, r.end = context.WithCancel(context.Background())
	err := record.Insist(ctx, e, func() (err error) { // watched before it is read, so that no change falls in between
		r.watch, err = e.Watch(ctx, c.terms.Base, func(zkconn.Event) { r.end() })
		if errors.Is(err, zk.ErrNoNode) {
			if _, err = c.terms.ReadOrMake(ctx, e); err == nil {
				err = node.ErrAgain
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	v, err := c.terms.ReadOrMake(ctx, e)
	if errors.Is(err, errs.ErrMisuse) { // perhaps this server has not heard of a Resize yet
		v, err = c.terms.Latest(ctx, e)
	}
	if err != nil {
		r.watch.Stop()
		return nil, err
	}
	r.Permits = v.T
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.changed.Err() != nil {
		return r, nil
	}
	if c.now != nil {
		c.now.watch.Stop()
		c.now.end()
	}
	c.now = r
	return r, nil
}

// await waits until there are n permits.
func (c *config) await(ctx context.Context, e *zkconn.Epoch, n int64) error {
	for pace := (node.Pace{Free: 2}); ; {
		r, err := c.learn(ctx, e)
		if err != nil {
			return err
		}
		if n <= r.Now() {
			errs.Waits(ctx, nil)
			return nil
		}
		errs.Waits(ctx, func(time.Duration) string { return fmt.Sprintf("%d asked for, and there are %d in all", n, r.Now()) })
		select {
		case <-r.changed.Done():
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Over():
			return zkconn.ErrOver
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// resize changes the number of permits.
func (c *config) resize(ctx context.Context, e *zkconn.Epoch, n int64) (err error) {
	doubt := false // it may have been applied
	defer func() { err = errs.InDoubt(err, doubt) }()
	read, synced, refused := c.terms.ReadOrMake, false, int32(-1) // the version that was read, after a sync, before a refusal
	for pace := (node.Pace{Free: 1}); ; {
		v, err := read(ctx, e)
		if err != nil {
			return err
		}
		// Another Resize has come in between, so during this call. Then this one counts as applied just before that one,
		// which has replaced it.
		if refused >= 0 && v.Number != refused || synced && v.T.Now() == n {
			return nil
		}
		if v.T.Now() != n {
			next := queue.Permits{Declared: c.declared, Capacity: &n, Most: max(v.T.Ever(), n)}
			_, err = node.RepeatChange(ctx, e, &zk.SetDataRequest{Path: c.terms.Base, Data: record.Encode(next), Version: v.Number})
			if err == nil || !record.Conflict(err) {
				return err
			}
			doubt = doubt || errs.Ambiguous(err)
			if synced {
				refused = v.Number
			}
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
		read, synced = c.terms.Latest, true // this server may not have heard of a Resize yet
	}
}
