package zksemaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// terms are what everybody who uses a semaphore must agree on: how many permits
// there are. They are kept in the base node, read once, and checked by every entry in
// the transaction that makes it, so that an entry is never made under old terms.
//
// Each request has terms of its own, so that it goes by one number, and one that it knows
// to be true, whatever other requests of the same object read meanwhile.
type terms struct {
	node     string // the base node, on the servers
	acl      []zk.ACL
	declared int64 // what our constructor was told
	latest   *latestTerms

	known bool
	now   *reading
}

func newTerms(node string, acl []zk.ACL, declared int64) *terms {
	return &terms{node: node, acl: acl, declared: declared, latest: new(latestTerms), now: &reading{permits: declared}}
}

// request returns terms for another request.
func (t *terms) request() *terms {
	return &terms{node: t.node, acl: t.acl, declared: t.declared, latest: t.latest, now: &reading{permits: t.declared}}
}

// capacity is how many permits there are, as far as this request knows.
func (t *terms) capacity() int64 { return t.now.permits }

// grant is the policy under these terms. Once they have changed it grants nothing: the
// entry is then in its own way until it has read them again.
func (t *terms) grant(ahead []queue.Entry, self queue.Entry) []queue.Entry {
	if t.now.stale.Load() {
		return []queue.Entry{self}
	}
	return queue.WeightedPolicy(t.capacity())(ahead, self)
}

// free is how many permits the entries of a queue leave.
func (t *terms) free(entries []queue.Entry) int64 {
	free := t.now.permits
	for _, e := range entries {
		switch {
		case e.Kind != queue.KindPermit:
		case e.Weight <= free:
			free -= e.Weight
		case t.now.most > t.now.permits:
			return 0 // it may hold since there were more
		default:
			return free // it waits, and so does everybody behind
		}
	}
	return free
}

// Check is what an entry checks: that the terms are still those that we know.
func (t *terms) Check() []any {
	return []any{&zk.CheckVersionRequest{Path: t.node, Version: t.now.version}}
}

// Fits implements Terms.
func (t *terms) Fits(weight int64) bool { return weight <= t.capacity() }

// Forget has the terms read again before they are used.
func (t *terms) Forget() { t.known = false }

// Refused is Forget when they have changed, or the base node has gone. Without the Sync this server might
// go on telling the old ones.
func (t *terms) Refused(ctx context.Context, e *zkconn.Epoch) error {
	t.Forget()
	if err := e.Sync(ctx, t.node); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// Founded looks who else uses the base node: what its one child was until now, the queue or a
// rival's, nobody knew.
func (t *terms) Founded(ctx context.Context, e *zkconn.Epoch) error {
	return rivals.RefuseAt(ctx, e, t.node)
}

// Learn makes sure that the terms are known: it takes over what another request of this
// object read, if nothing was said of a change since, or reads them, or writes them if
// nobody has.
func (t *terms) Learn(ctx context.Context, e *zkconn.Epoch) error {
	if t.known && t.now.e == e && !t.now.stale.Load() {
		return nil
	}
	if r := t.latest.in(e); r != nil && r != t.now {
		t.now, t.known = r, true
		return nil
	}
	return t.read(ctx, e)
}

// read reads the terms, or writes them if nobody has.
func (t *terms) read(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		old := t.latest.in(e)
		r := old
		if r == nil { // watched before it is read, so that no change falls in between
			var err error
			if r, err = t.watched(ctx, e); err != nil {
				return err
			}
		}
		s, st, err := t.stored(ctx, e)
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
			r = t.latest.put(r)
		}
		if !r.stale.Load() {
			t.now, t.known = r, true
			return nil
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// watched begins a reading: it has the base node watched, and made if it is not there.
func (t *terms) watched(ctx context.Context, e *zkconn.Epoch) (*reading, error) {
	for made, pace := (node.Pace{Free: 1}), (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		r := &reading{e: e}
		w, err := e.Watch(ctx, t.node, func(zkconn.Event) { r.stale.Store(true) })
		switch {
		case err == nil:
			r.watch = w
			return r, nil
		case errors.Is(err, zk.ErrNoNode):
			if err = t.found(ctx, e); err == nil {
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
func (t *terms) stored(ctx context.Context, e *zkconn.Epoch) (s queue.Permits, st *zk.Stat, err error) {
	for synced, pace := false, (node.Pace{Free: 2}); ; {
		data, st, err := e.Get(ctx, t.node)
		missing := errors.Is(err, zk.ErrNoNode)
		if missing {
			err = t.found(ctx, e)
		}
		if err == nil && !missing && (st.NumChildren > 1 || st.NumChildren > 0 && len(data) == 0) { // more than our queue
			err = rivals.RefuseAt(ctx, e, t.node)
		}
		if err != nil {
			return s, nil, err
		}
		if !missing && len(data) == 0 { // made as somebody's directory
			if _, err := t.store(ctx, e, queue.Permits{Declared: t.declared}, st.Version); err != nil && !errors.Is(err, zk.ErrBadVersion) && !zkconn.Unknown(err) {
				return s, nil, err
			}
		}
		if len(data) == 0 {
			if err := pace.Rest(ctx, e); err != nil {
				return s, nil, err
			}
			continue
		}
		s = queue.Permits{}
		if err := json.Unmarshal(data, &s); err != nil || s.Declared <= 0 {
			return s, nil, fmt.Errorf("%w: the base node holds %s, which is not that of a semaphore; use another path", errs.ErrMisuse, errs.Quote(string(data)))
		}
		switch {
		case s.Declared == t.declared || s.Now() == t.declared:
			return s, st, nil
		case synced:
			return s, nil, fmt.Errorf("%w: the semaphore has %d permits, not %d; use the same number everywhere, or Resize",
				errs.ErrMisuse, s.Now(), t.declared)
		}
		// This server may not have heard of a Resize yet.
		if err := e.Sync(ctx, t.node); err != nil {
			return s, nil, err
		}
		synced = true
	}
}

// found makes the base node with our terms.
func (t *terms) found(ctx context.Context, e *zkconn.Epoch) error {
	data, err := json.Marshal(queue.Permits{Declared: t.declared})
	if err != nil {
		return err
	}
	_, err = e.Create(ctx, t.node, data, 0, t.acl)
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return node.MakeDir(ctx, e, path.Dir(t.node), t.acl)
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return node.Sleep(ctx, e, soon)
	}
	return err
}

// store writes terms if they are still those of the version, and returns the new one.
func (t *terms) store(ctx context.Context, e *zkconn.Epoch, s queue.Permits, version int32) (int32, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	if err := e.Await(ctx); err != nil {
		return 0, err
	}
	res, err := e.StartMulti(&zk.SetDataRequest{Path: t.node, Data: data, Version: version}).Wait(ctx, e)
	if err != nil {
		return 0, err
	}
	if len(res) != 1 || res[0].Stat == nil {
		return 0, zk.ErrUnknown
	}
	return res[0].Stat.Version, nil
}

// Follow has told called when the terms change, and reports whether they have since we
// learnt them.
func (t *terms) Follow(ctx context.Context, e *zkconn.Epoch, told func()) (w *zkconn.Watch, changed bool, err error) {
	w, err = e.Watch(ctx, t.node, func(zkconn.Event) { told() })
	switch {
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return nil, true, node.Sleep(ctx, e, soon)
	case errors.Is(err, zk.ErrNoNode):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	changed, err = t.changed(ctx, e)
	return w, changed, err
}

// changed asks the server whether the terms have changed since we learnt them.
func (t *terms) changed(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	st, there, err := e.Exists(ctx, t.node)
	if err != nil {
		return false, err
	}
	return !there || !t.known || t.now.stale.Load() || st.Mzxid != t.now.mzxid, nil
}

// soon is the pause before a read that got no usable answer is repeated.
const soon = 5 * time.Millisecond
