package zksync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/enter"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// terms are what everybody who uses a semaphore must agree on: how many permits
// there are. They are kept in the base node, read once, and checked by every entry in
// the transaction that makes it, so that an entry is never made under old terms.
type terms struct {
	node     string // the base node, on the servers
	declared int64  // what our constructor was told

	mu      sync.Mutex
	known   bool
	version int32
	permits int64
	most    int64 // that there ever were
}

// storedTerms is the data of the base node.
type storedTerms struct {
	Permits  int64 `json:"permits"`            // as the first constructor declared
	Capacity int64 `json:"capacity,omitempty"` // since a Resize
	Most     int64 `json:"most,omitempty"`     // there ever were, if a Resize made them fewer
}

func (t storedTerms) capacity() int64 {
	if t.Capacity > 0 {
		return t.Capacity
	}
	return t.Permits
}

// capacity is how many permits there are, as far as we know.
func (t *terms) capacity() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return t.declared
	}
	return t.permits
}

// free is how many permits the entries of a queue leave.
func (t *terms) free(entries []entry) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	free := t.permits
	for _, e := range entries {
		switch {
		case e.kind != KindPermit:
		case e.weight <= free:
			free -= e.weight
		case t.most > t.permits:
			return 0 // it may hold since there were more
		default:
			return free // it waits, and so does everybody behind
		}
	}
	return free
}

// check is what an entry checks: that the terms are still those that we know.
func (t *terms) check() []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []any{&zk.CheckVersionRequest{Path: t.node, Version: t.version}}
}

// forget has the terms read again before they are used.
func (t *terms) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = false
}

// learn reads the terms if they are not known, or writes them if nobody has.
func (t *terms) learn(ctx context.Context, e *zkconn.Epoch, acl []zk.ACL) error {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if known {
		return nil
	}
	for synced := false; ; {
		data, st, err := e.Get(ctx, t.node)
		if errors.Is(err, zk.ErrNoNode) {
			if err := t.found(ctx, e, acl); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(data) == 0 { // made as somebody's directory
			if _, err := t.store(ctx, e, storedTerms{Permits: t.declared}, st.Version); err != nil && !errors.Is(err, zk.ErrBadVersion) && !zkconn.Unknown(err) {
				return err
			}
			continue
		}
		var s storedTerms
		if err := json.Unmarshal(data, &s); err != nil || s.Permits <= 0 {
			return fmt.Errorf("%w: the base node holds %s, which is not that of a semaphore; use another path", ErrMisuse, quoteShort(string(data)))
		}
		if s.Permits != t.declared && s.capacity() != t.declared && !synced {
			// This server may not have heard of a Resize yet.
			if err := e.Sync(ctx, t.node); err != nil {
				return err
			}
			synced = true
			continue
		}
		if s.Permits != t.declared && s.capacity() != t.declared {
			return fmt.Errorf("%w: the semaphore has %d permits, not %d; use the same number everywhere, or Resize",
				ErrMisuse, s.capacity(), t.declared)
		}
		t.mu.Lock()
		t.known, t.version, t.permits = true, st.Version, s.capacity()
		t.most = max(s.Most, s.Permits, s.Capacity)
		t.mu.Unlock()
		return nil
	}
}

// found makes the base node with our terms.
func (t *terms) found(ctx context.Context, e *zkconn.Epoch, acl []zk.ACL) error {
	data, err := json.Marshal(storedTerms{Permits: t.declared})
	if err != nil {
		return err
	}
	_, err = e.Create(ctx, t.node, data, 0, acl)
	switch {
	case err == nil, errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		return enter.MakeDir(ctx, e, parentOf(t.node), acl)
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return enter.Sleep(ctx, e, lookAgain)
	}
	return err
}

// store writes terms if they are still those of the version, and returns the new one.
func (t *terms) store(ctx context.Context, e *zkconn.Epoch, s storedTerms, version int32) (int32, error) {
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

// follow has n told when the terms change, and reports whether they have since we
// learnt them.
func (t *terms) follow(ctx context.Context, e *zkconn.Epoch, n *news) (changed bool, err error) {
	w, err := e.Watch(ctx, t.node, func(zkconn.News) { n.retell() })
	if err != nil {
		if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) {
			return true, enter.Sleep(ctx, e, lookAgain)
		}
		if errors.Is(err, zk.ErrNoNode) {
			return true, nil
		}
		return false, err
	}
	n.hold([]*zkconn.Watch{w})
	st, there, err := e.Exists(ctx, t.node)
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !there || !t.known || st.Version != t.version, nil
}

// parentOf is the directory of a node on the servers.
func parentOf(node string) string {
	for i := len(node) - 1; i > 0; i-- {
		if node[i] == '/' {
			return node[:i]
		}
	}
	return "/"
}
