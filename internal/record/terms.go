package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Terms are the parameters of a record, and perhaps its state. They are the data of its base node, a JSON object.
type Terms[T any] struct {
	Base string // the path of the base node on the servers
	ACL  []zk.ACL
	// Type is the name of the type in package layout. If the base node is named by it, its parent is the path of the
	// user, else the base node itself is. The nodes of another type there are a misuse.
	Type string
	// Keys are the keys that the data of every base node of this type has.
	Keys []string
	// First returns the first data of the base node, and the paths of the nodes that are made with it.
	First func() (T, []string)
	// Check returns an error if this process must not use the record of these terms.
	Check func(t T) error
	// Beside returns an error if another program uses the base node. It is asked when that has no data, or more than
	// one child. Without data the base node gets the first ones then; if Beside is nil, that is a misuse. It is for a base
	// node that is not named by the type.
	Beside func(ctx context.Context, e *zkconn.Epoch) error
	// Lives says that the record has a name for its life: see [WritersOf]. The directory of the writers is one of the first nodes.
	Lives bool
	// Read reads the base node, for an object that remembers it as long as it does not change; nil for others.
	Read func(ctx context.Context, e *zkconn.Epoch) (zkconn.Content, error)

	known atomic.Pointer[Version[T]] // the newest that this object has read or written; nil before the first
}

// Version is the terms as they were at one time.
type Version[T any] struct {
	T       T
	Number  int32  // of the base node's data
	Founded int64  // the czxid of the base node; 0 if New
	New     bool   // this very call made the base node
	Life    string // see [WritersOf]; "" if it has no name
	Written int64  // when the data was written, by the servers' clock, in milliseconds since the Unix epoch; 0 if New
}

// Encode returns t as the data of a node.
func Encode(t any) []byte {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // the terms of recipes are numbers, booleans and strings
	}
	return data
}

// Known returns the terms that were last read or changed, however long ago. If there are none, it reads them.
func (t *Terms[T]) Known(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	if known := t.known.Load(); known != nil {
		return *known, nil
	}
	return t.ReadOrMake(ctx, e)
}

// Forget has the next call of Known read the terms.
func (t *Terms[T]) Forget() { t.known.Store(nil) }

// Became records that the terms have changed to to. from is their number before the change: if this object knows
// another number, it has read something else meanwhile, and keeps that.
func (t *Terms[T]) Became(from int32, to Version[T]) {
	if known := t.known.Load(); known != nil && known.Number == from {
		t.known.CompareAndSwap(known, &to)
	}
}

// Latest is ReadOrMake, after the server has caught up with the leader.
func (t *Terms[T]) Latest(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	if err := Synced(ctx, e, t.Base); err != nil {
		return Version[T]{}, err
	}
	return t.ReadOrMake(ctx, e)
}

// ReadOrMake reads the terms as this server knows them. If there is no base node, it makes it.
func (t *Terms[T]) ReadOrMake(ctx context.Context, e *zkconn.Epoch) (Version[T], error) {
	v, there, path, err := t.peek(ctx, e)
	if err != nil || there {
		return v, err
	}
	return t.make(ctx, e, path)
}

// Make is ReadOrMake for a caller that has just seen that there is no base node.
func (t *Terms[T]) Make(ctx context.Context, e *zkconn.Epoch) (v Version[T], err error) {
	var path zkconn.Content
	if t.named() {
		if path, err = t.unused(ctx, e); err != nil {
			return v, err
		}
	}
	return t.make(ctx, e, path)
}

// make makes the base node, or reads it if another process does. path is what unused has returned.
func (t *Terms[T]) make(ctx context.Context, e *zkconn.Epoch, path zkconn.Content) (v Version[T], err error) {
	// There must be a pause before the servers are asked again and again; not after the first attempt, which another
	// process has mostly overtaken.
	for pace := (node.Pace{Free: 2}); ; {
		v, err := t.found(ctx, e, path)
		if err != nil || v.New {
			return v, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return v, err
		}
		there := false
		if v, there, path, err = t.peek(ctx, e); err != nil || there {
			return v, err
		}
	}
}

// Ask is Latest, but makes nothing. It is for questions, after which other
// processes must still be free to choose the terms.
func (t *Terms[T]) Ask(ctx context.Context, e *zkconn.Epoch) (v Version[T], there bool, err error) {
	if err := Synced(ctx, e, t.Base); err != nil {
		return v, false, err
	}
	return t.Peek(ctx, e)
}

// There is Ask for a caller that needs no terms: see [Ruin].
func (t *Terms[T]) There(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	_, there, err := t.Ask(ctx, e)
	return there, err
}

// Peek is ReadOrMake, but makes nothing.
func (t *Terms[T]) Peek(ctx context.Context, e *zkconn.Epoch) (v Version[T], there bool, err error) {
	v, there, _, err = t.peek(ctx, e)
	return v, there, err
}

// peek is Peek. Without a base node that is named by the type, it also returns what unused does; of a base node
// without data, the Stat.
func (t *Terms[T]) peek(ctx context.Context, e *zkconn.Epoch) (v Version[T], there bool, path zkconn.Content, err error) {
	data, stat, life, err := t.read(ctx, e)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		err = nil
		if t.named() {
			path, err = t.unused(ctx, e)
		}
		return v, false, path, err
	case err != nil:
		return v, false, path, err
	case len(data) == 0 && t.Beside != nil:
		return v, false, zkconn.Content{Stat: stat}, t.Beside(ctx, e)
	case !decode(data, &v.T, t.Keys):
		return v, false, path, t.foreign(ctx, e, data)
	}
	err = t.Check(v.T)
	if err == nil && t.Beside != nil && stat.NumChildren > 1 {
		err = t.Beside(ctx, e)
	}
	if err != nil {
		return v, false, path, err
	}
	v.Number, v.Founded, v.Life, v.Written = stat.Version, stat.Czxid, life, stat.Mtime
	t.keep(v)
	return v, true, path, nil
}

// Decode returns the terms in the data of a base node, and whether they are those of this record.
func (t *Terms[T]) Decode(data []byte) (v T, ok bool) {
	ok = decode(data, &v, t.Keys) && t.Check(v) == nil
	return v, ok
}

// keep records what was read or made. New is true only for the call that made the base node.
func (t *Terms[T]) keep(v Version[T]) {
	v.New = false
	t.known.Store(&v)
}

// found makes the base node together with the nodes of the first state, and with the directories above that are missing,
// unless another process does. v.New tells whether it did; otherwise the caller reads again. path is what unused has
// returned.
func (t *Terms[T]) found(ctx context.Context, e *zkconn.Epoch, path zkconn.Content) (v Version[T], err error) {
	first, nodes := t.First()
	var ops []any
	life := ""
	if t.Lives {
		life = node.NewUUID()
	}
	above := node.NewDirs(parent(t.Base), t.ACL)
	base := any(&zk.CreateRequest{Path: t.Base, Data: Encode(first), Acl: t.ACL})
	switch there := path.Stat != nil; {
	case there && !t.named():
		base, above = &zk.SetDataRequest{Path: t.Base, Data: Encode(first), Version: path.Stat.Version}, node.NewDirs("", nil)
	case there:
		// It writes what is there already. So of two types that are made at the same time, one is refused, and looks
		// again; and so is one that is made while a lock is taken there, which also writes to the path.
		ops = append(ops, &zk.SetDataRequest{Path: parent(t.Base), Data: path.Data, Version: path.Stat.Version})
		above = node.NewDirs("", nil)
	case t.named():
		above.Miss() // of two types that make the path at the same time, one is refused
	}
	ops = append(append(ops, base), t.creations(nodes, life)...)
	for again := true; again; again = err != nil && above.Learn(err) {
		_, err = node.RepeatTransaction(ctx, e, append(above.Ops(), ops...)...)
	}
	switch {
	case err == nil:
		v = Version[T]{T: first, New: true, Life: life}
		t.keep(v)
	case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode):
		// Another process was first, and this server may not know of its node yet.
		err = Synced(ctx, e, t.Base)
	}
	return v, err
}

// unused returns an error if the path, the parent of the base node, has nodes of a type. Otherwise it returns
// the path's data, which have no Stat if there is no such node.
func (t *Terms[T]) unused(ctx context.Context, e *zkconn.Epoch) (path zkconn.Content, err error) {
	path.Data, path.Stat, err = e.Get(ctx, parent(t.Base))
	if errors.Is(err, zk.ErrNoNode) {
		return zkconn.Content{}, nil
	}
	if err != nil {
		return path, err
	}
	var names []string
	if path.Stat.NumChildren > 0 {
		if names, _, err = e.Children(ctx, parent(t.Base)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return path, err
		}
	}
	if err := layout.RefuseAllBut(t.Type, path.Data, names); err != nil {
		return path, err
	}
	return path, node.RefuseSuspect(ctx, e, t.Type, parent(t.Base), names) // if it is this type, another process has just made it
}

// named reports whether the base node is named by the type.
func (t *Terms[T]) named() bool { return layout.Typed([]string{t.Type}) != "" }

// foreign is the error for a base node with data that are not those of this type.
func (t *Terms[T]) foreign(ctx context.Context, e *zkconn.Epoch, data []byte) error {
	names, _, err := e.Children(ctx, t.Base)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := layout.RefuseOther(t.Type, data, names); err != nil {
		return err
	}
	if layout.Typed(names) == t.Type {
		return errs.Misuse(`the data of the %s were overwritten; "menagerie reset" removes it, and its next user makes it again`, t.Type)
	}
	return errs.Misuse("the data of the node are not those of a %s; use another path", t.Type)
}

// decode reads the data of a base node, and reports whether it is what it should be: a JSON object with all of these
// keys, and without a key that this version does not know. Data with other keys may belong to something else, which
// must be left alone; or to a later version of this package, whose rules this version does not know.
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
