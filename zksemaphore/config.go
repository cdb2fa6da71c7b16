package zksemaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// config is what everybody who uses a semaphore must agree on: how many permits
// there are. It is kept in the base node, read once, and checked by every entry in
// the transaction that makes it, so that an entry is never made under an old config.
//
// Each request has a config of its own, so that it goes by one number, and one that it knows
// to be true, whatever other requests of the same object read meanwhile.
type config struct {
	node     string // the base node, on the servers
	acl      []zk.ACL
	declared int64 // what our constructor was told
	latest   *latestSnapshot

	known    bool
	snapshot *snapshot
	refused  int // how often an entry was refused, because the config had changed
}

// refusals is how often the entry of a request may be refused because the config has changed since its read. After that it makes an
// entry that does not check what was read, and is granted only by what it reads later. Else a process far from the servers would never have an
// entry beside one that calls Resize again and again.
const refusals = 2

func newConfig(node string, acl []zk.ACL, declared int64) *config {
	return &config{node: node, acl: acl, declared: declared, latest: new(latestSnapshot), snapshot: &snapshot{permits: declared}}
}

// request returns the config of another request.
func (c *config) request() *config {
	return &config{node: c.node, acl: c.acl, declared: c.declared, latest: c.latest, snapshot: &snapshot{permits: c.declared}}
}

// capacity is how many permits there are, as far as this request knows.
func (c *config) capacity() int64 { return c.snapshot.permits }

// blockers is the policy under this config. Once it has changed it grants nothing: the
// entry is then in its own way until it has read it again.
func (c *config) blockers(ahead []queue.Entry, self queue.Entry) []queue.Entry {
	if !c.known || c.snapshot.stale.Load() {
		return []queue.Entry{self}
	}
	return queue.WeightedPolicy(c.capacity())(ahead, self)
}

// free is how many permits the entries of a queue leave.
func (c *config) free(entries []queue.Entry) int64 {
	free := c.snapshot.permits
	for _, e := range entries {
		switch {
		case e.Kind != queue.KindPermit:
		case e.Weight <= free:
			free -= e.Weight
		case c.snapshot.most > c.snapshot.permits:
			return 0 // it may hold since there were more
		default:
			return free // it waits, and so does everybody behind
		}
	}
	return free
}

// Now implements queue.Config.
func (c *config) Now(ctx context.Context, e *zkconn.Epoch) (queue.Policy, error) {
	if err := c.Learn(ctx, e); err != nil {
		return nil, err
	}
	return queue.WeightedPolicy(c.capacity()), nil
}

// Check is what an entry checks: that the config is still the one that we know, or, after refusals, only that there is one.
func (c *config) Check() []any {
	if c.refused >= refusals {
		c.known = false // what is known grants nothing
		return []any{&zk.CheckVersionRequest{Path: c.node, Version: -1}}
	}
	return []any{&zk.CheckVersionRequest{Path: c.node, Version: c.snapshot.version}}
}

// Fits implements queue.Config.
func (c *config) Fits(weight int64) bool { return weight <= c.capacity() }

// Refused has it read again when it has changed, or the base node has gone. Without the Sync this server might
// go on telling the old one.
func (c *config) Refused(ctx context.Context, e *zkconn.Epoch) error {
	c.known = false
	c.refused++
	if err := e.Sync(ctx, c.node); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// Founded looks who else uses the base node: what its one child was until now, the queue or a
// rival's, nobody knew.
func (c *config) Founded(ctx context.Context, e *zkconn.Epoch) error {
	return rivals.RefuseAt(ctx, e, c.node)
}

// Learn makes sure that it is known: it takes over what another request of this
// object read, if nothing was said of a change since, or reads it, or writes it if
// nobody has.
func (c *config) Learn(ctx context.Context, e *zkconn.Epoch) error {
	if c.known && c.snapshot.e == e && !c.snapshot.stale.Load() {
		return nil
	}
	if r := c.latest.in(e); r != nil && r != c.snapshot {
		c.snapshot, c.known = r, true
		return nil
	}
	return c.read(ctx, e)
}

// read reads it, or writes it if nobody has.
func (c *config) read(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		old := c.latest.in(e)
		r := old
		if r == nil { // watched before it is read, so that no change falls in between
			var err error
			if r, err = c.watched(ctx, e); err != nil {
				return err
			}
		}
		s, st, err := c.stored(ctx, e)
		switch {
		case err != nil:
			if old == nil {
				r.watch.Stop()
			}
			return err
		case old != nil && old.mzxid != st.Mzxid:
			old.stale.Store(true) // we will be told so
			r = old
		case old == nil:
			r.version, r.mzxid, r.permits = st.Version, st.Mzxid, s.Now()
			r.most = s.Ever()
			r = c.latest.put(r)
		}
		if old == nil || !r.stale.Load() { // what was just read was true then; if it is stale by now, blockers and Check see to it
			c.snapshot, c.known = r, true
			return nil
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// watched begins a snapshot: it has the base node watched, and made if it is not there.
func (c *config) watched(ctx context.Context, e *zkconn.Epoch) (*snapshot, error) {
	for made, pace := (node.Pace{Free: 1}), (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		r := &snapshot{e: e}
		w, err := e.Watch(ctx, c.node, func(zkconn.Event) { r.stale.Store(true) })
		switch {
		case err == nil:
			r.watch = w
			return r, nil
		case errors.Is(err, zk.ErrNoNode):
			if err = c.found(ctx, e); err == nil {
				err = made.Rest(ctx, e)
			}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			err = pace.Rest(ctx, e)
		}
		if err != nil {
			return nil, err
		}
	}
}

// stored reads what is stored, and checks that it is what we were told.
func (c *config) stored(ctx context.Context, e *zkconn.Epoch) (s queue.Permits, st *zk.Stat, err error) {
	for synced, pace := false, (node.Pace{Free: 2}); ; {
		data, st, err := e.Get(ctx, c.node)
		missing := errors.Is(err, zk.ErrNoNode)
		if missing {
			err = c.found(ctx, e)
		}
		if err == nil && !missing && (st.NumChildren > 1 || st.NumChildren > 0 && len(data) == 0) { // more than our queue
			err = rivals.RefuseAt(ctx, e, c.node)
		}
		if err != nil {
			return s, nil, err
		}
		if !missing && len(data) == 0 { // made as somebody's directory
			if _, err := c.store(ctx, e, queue.Permits{Declared: c.declared}, st.Version); err != nil && !errors.Is(err, zk.ErrBadVersion) && !zkconn.Unknown(err) {
				return s, nil, err
			}
		}
		if len(data) == 0 {
			if err := pace.Rest(ctx, e); err != nil {
				return s, nil, err
			}
			continue
		}
		if err := layout.RefuseOther(layout.Semaphore, data, nil); err != nil {
			return s, nil, err
		}
		var ok bool
		if s, ok = queue.ParsePermits(data); !ok {
			return s, nil, fmt.Errorf("%w: the base node holds %s, which is not that of a semaphore; use another path", errs.ErrMisuse, errs.Quote(string(data)))
		}
		switch {
		case s.Declared == c.declared || s.Now() == c.declared:
			return s, st, nil
		case synced:
			return s, nil, fmt.Errorf("%w: the number of permits of the semaphore is %d, not %d; use the same number everywhere, or Resize",
				errs.ErrMisuse, s.Now(), c.declared)
		}
		// This server may not have heard of a Resize yet.
		if err := e.Sync(ctx, c.node); err != nil {
			return s, nil, err
		}
		synced = true
	}
}

// found makes the base node with our config.
func (c *config) found(ctx context.Context, e *zkconn.Epoch) error {
	data, err := json.Marshal(queue.Permits{Declared: c.declared})
	if err != nil {
		return err
	}
	for pace := (node.Pace{Free: 1}); ; {
		_, err = e.Create(ctx, c.node, data, 0, c.acl)
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			return nil // the callers look again, after a pause
		case !errors.Is(err, zk.ErrNoNode):
			return err
		}
		if err := pace.Rest(ctx, e); err != nil { // not after it is made: it is empty then, and may be removed
			return err
		}
		if err := node.MakeDir(ctx, e, path.Dir(c.node), c.acl); err != nil {
			return err
		}
	}
}

// store writes s if what is there is still of the version, and returns the new one.
func (c *config) store(ctx context.Context, e *zkconn.Epoch, s queue.Permits, version int32) (int32, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	if err := e.Await(ctx); err != nil {
		return 0, err
	}
	res, err := e.StartMulti(&zk.SetDataRequest{Path: c.node, Data: data, Version: version}).Wait(ctx, e)
	if err != nil {
		return 0, err
	}
	if len(res) != 1 || res[0].Stat == nil {
		return 0, zk.ErrUnknown
	}
	return res[0].Stat.Version, nil
}

// Follow has told called when it changes, and reports whether it has since
// we learnt it. Then it is read again before it is used.
func (c *config) Follow(ctx context.Context, e *zkconn.Epoch, told func()) (w *zkconn.Watch, changed bool, err error) {
	defer func() { c.known = c.known && !changed }()
	w, err = e.Watch(ctx, c.node, func(zkconn.Event) { told() })
	switch {
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return nil, true, nil // the callers ask again, after a pause
	case errors.Is(err, zk.ErrNoNode):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	return w, c.changed(), nil
}

// changed reports whether the config has changed since we learned it. The waiter has subscribed to the watch of the server
// that the snapshot relies on, if that is still waiting for its event. Then there was no change before, and the waiter is
// told of a later one. So nobody needs to ask.
func (c *config) changed() bool {
	return !c.known || c.snapshot.stale.Load() || !c.snapshot.watch.Waiting()
}
