package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Terms are the parameters of a record, and perhaps its state: the data of its base node, a JSON object.
type Terms[T any] struct {
	Base string // on the servers
	ACL  []zk.ACL
	// Keys are those without which the base node belongs to something else.
	Keys []string
	// First returns the first data of the base node, and the nodes that are made with it.
	First func() (T, []string)
	// Check may refuse the data of the base node; ours is false if it is not the data of such a record.
	Check func(t T, ours bool) error

	mu    sync.Mutex
	known *Version[T]
}

// Version is what the terms were at one time.
type Version[T any] struct {
	T       T
	Number  int32 // of the base node's data
	Founded int64 // the base node's czxid; 0 if it is New
	New     bool  // the base node was made by this very call
}

// Encode is what the base node says.
func Encode(t any) []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // the terms of recipes are numbers, booleans and strings
	}
	return data
}

// Known returns the terms that were last read or changed, at any age. If there are none, it reads them.
func (t *Terms[T]) Known(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	return t.Read(ctx, e)
}

// Became records a change of the terms: from is the number that they had before it.
func (t *Terms[T]) Became(from int32, to Version[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known != nil && t.known.Number == from {
		t.known = &to
	}
}

// Latest is Read by what the leader of the servers knows.
func (t *Terms[T]) Latest(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	if err := Synced(ctx, e, t.Base); err != nil {
		return Version[T]{}, err
	}
	return t.Read(ctx, e)
}

// Read reads the terms, as far as this server knows, or makes the base node.
func (t *Terms[T]) Read(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	// If there is still no base node, the servers must not be asked in a spin. Two attempts come at once:
	// first the parent is made, then the base node.
	for pace := (node.Pace{Free: 2}); ; {
		v, there, err := t.Peek(ctx, e)
		if err != nil || there {
			return v, err
		}
		if v, err = t.found(ctx, e); err != nil || v.New {
			return v, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return v, err
		}
	}
}

// Ask is Latest that makes nothing: for questions, after which others must be free to say what the terms are.
func (t *Terms[T]) Ask(ctx context.Context, e *zkconn.Epoch) (v Version[T], there bool, err error) {
	if err := Synced(ctx, e, t.Base); err != nil {
		return v, false, err
	}
	return t.Peek(ctx, e)
}

// Peek is Read that makes nothing.
func (t *Terms[T]) Peek(ctx context.Context, e *zkconn.Epoch) (v Version[T], there bool, err error) {
	data, stat, err := e.Get(ctx, t.Base)
	if errors.Is(err, zk.ErrNoNode) {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	ours := decode(data, &v.T, t.Keys)
	if err := t.Check(v.T, ours); err != nil {
		return v, false, err
	}
	v.Number, v.Founded = stat.Version, stat.Czxid
	t.keep(v)
	return v, true, nil
}

func (t *Terms[T]) keep(v Version[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.New = false
	t.known = &v
}

// found makes the base node, and the nodes of the first state with it, unless another process does.
func (t *Terms[T]) found(ctx context.Context, e *zkconn.Epoch) (v Version[T], err error) {
	first, nodes := t.First()
	ops := []any{&zk.CreateRequest{Path: t.Base, Data: Encode(first), Acl: t.ACL}}
	for _, path := range nodes {
		ops = append(ops, &zk.CreateRequest{Path: path, Acl: t.ACL})
	}
	_, err = Transact(ctx, e, ops...)
	switch {
	case err == nil:
		v = Version[T]{T: first, New: true}
		t.keep(v)
	case errors.Is(err, zk.ErrNodeExists):
		err = Synced(ctx, e, t.Base) // this server has to hear of it
	case errors.Is(err, zk.ErrNoNode):
		err = node.MakeDir(ctx, e, parent(t.Base), t.ACL)
	}
	return v, err
}

// decode reads the data of a base node, and reports whether it is what it should be: a JSON
// object with all of these keys, and without any that nobody here knows. What is strange may
// belong to something else, which must be left alone; or to a later version of this package, by
// whose rules we do not play.
func decode(data []byte, terms any, keys []string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil {
		return false
	}
	for _, k := range keys {
		if _, there := object[k]; !there {
			return false
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(terms) == nil
}
