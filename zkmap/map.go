package zkmap

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/table"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Map is a map that many processes share. Its methods are those of sync.Map, with a context and an error, and some of
// java.util.concurrent's ConcurrentMap. It is safe for use by many goroutines.
//
// All methods block until the servers answer or ctx ends; then the error wraps the context's error. Disconnects and lost
// sessions delay them. If the session is closed, the error is zksync.ErrClosed. If the path has the nodes of another type,
// a key or a value cannot be encoded, or does not fit into a request, it is zksync.ErrMisuse. If somebody has
// removed nodes of the map by hand, it is zksync.ErrBroken. If it is not known whether a change was made, the error satisfies
// zksync.Ambiguous; the other errors of a method that changes one key mean that nothing was changed. If the data of an
// entry cannot be decoded, the error names its node.
//
// The requests of each method are those after the first use of an object, which costs one more, and
// some to make the map. Where another process changes the same key at the same time, or removes keys, there may be more.
type Map[K comparable, V any] struct {
	at   *session.Access
	t    *table.Table
	keys codec.Keys[K]
}

// New names a map by a path of its own, which is made when the map is first changed. K is a string type, an
// integer type, or a type with the methods of encoding.TextMarshaler and TextUnmarshaler. Values are JSON, unless
// zksync.WithCodec says otherwise. All processes must use the same types and the same codec.
//
// New does no I/O. The first call reports a malformed path, another type K, a nil session, or an option that does not
// belong to a map as zksync.ErrMisuse.
func New[K comparable, V any](s *zksync.Session, path string, opts ...zksync.Option) *Map[K, V] {
	m := &Map[K, V]{at: session.NewValueAccess((*session.Session)(s), path, opts)}
	m.t, m.keys = keyed[K](m.at, layout.Map)
	return m
}

// made is m, which New has made. Of a zero or nil value it panics.
func (m *Map[K, V]) made() *Map[K, V] {
	if m == nil || m.at == nil {
		panic(errs.Unmade("a Map", "New"))
	}
	return m
}

// keyed is a table with the rules for its keys.
func keyed[K comparable](at *session.Access, kind string) (*table.Table, codec.Keys[K]) {
	keys, err := codec.KeysOf[K]()
	at.Refuse(err)
	return table.New(at, kind), keys
}

// of runs f for one key, in the present session, and again in the next one if that ends. If there is no such map,
// it does not run f.
func of[K comparable](ctx context.Context, t *table.Table, at *session.Access, keys codec.Keys[K], op string, need table.Need, k K,
	f func(ctx context.Context, e *zkconn.Epoch, key string) error) error {
	if err := at.Misuse(); err != nil { // there may be no rules for the keys
		return errs.Wrap(op, at.Path, err)
	}
	key, err := keys.Encode(k)
	if err != nil {
		return errs.Wrap(op, at.Path, err)
	}
	return t.Of(ctx, op, need, key, func(ctx context.Context, e *zkconn.Epoch) error { return f(ctx, e, key) })
}

func (m *Map[K, V]) of(ctx context.Context, op string, need table.Need, k K, f func(ctx context.Context, e *zkconn.Epoch, key string) error) error {
	return of(ctx, m.t, m.at, m.keys, op, need, k, f)
}

// encode encodes a value for a request that changes the entry of a key.
func (m *Map[K, V]) encode(key string, v V) ([]byte, error) {
	return codec.Encode(m.at.Settings.Codec, v, m.t.Room(key))
}

// decode decodes the value of an entry that is there.
func (m *Map[K, V]) decode(found table.Entry) (V, error) {
	return codec.Decode[V](m.at.Settings.Codec, found.Data, found.Node)
}

// Load returns the value of a key; ok is false if there is none. It is what the session's server knows: never older than
// what this session has seen or written before. What another session has just changed may arrive a moment later, as long as a
// server can lag behind. To read the newest value, use Update or LoadOrStore. It costs one request.
func (m *Map[K, V]) Load(ctx context.Context, k K) (v V, ok bool, err error) {
	err = m.made().of(ctx, "load", table.FromHere, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		found, err := m.t.Get(ctx, e, key)
		if err != nil || !found.There {
			return err
		}
		v, err = m.decode(found)
		ok = err == nil
		return err
	})
	return v, ok, err
}

// Store sets the value of a key, whatever there is. It costs one request if the key is there, and two if it is not.
func (m *Map[K, V]) Store(ctx context.Context, k K, v V) error {
	return m.made().of(ctx, "store", table.ToExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		data, err := m.encode(key, v)
		if err != nil {
			return err
		}
		return m.t.Store(ctx, e, key, data)
	})
}

// LoadOrStore returns the value of a key, with loaded true. If there is none, it stores v and returns that. It
// costs one request if it stores, one more for the first key of a bucket, and two if it loads.
func (m *Map[K, V]) LoadOrStore(ctx context.Context, k K, v V) (actual V, loaded bool, err error) {
	err = m.made().of(ctx, "load-or-store", table.ToExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		data, err := m.encode(key, v)
		if err != nil {
			return err
		}
		found, err := m.t.LoadOrCreate(ctx, e, key, data)
		switch {
		case err != nil:
		case found.There:
			actual, err = m.decode(found)
			loaded = err == nil
		default:
			actual = v
		}
		return err
	})
	return actual, loaded, err
}

// LoadAndDelete removes a key and returns the value that it had; loaded is false if there was none. It costs two requests,
// and three if there is none.
func (m *Map[K, V]) LoadAndDelete(ctx context.Context, k K) (v V, loaded bool, err error) {
	err = m.made().change(ctx, "load-and-delete", table.FromLeader, k, func(_ string, found table.Entry) (d table.Decision, err error) {
		var none V
		if v, loaded = none, found.There; !loaded {
			return d, nil
		}
		v, err = m.decode(found)
		return table.Decision{Do: table.Drop}, err
	})
	if err != nil {
		var none V
		return none, false, err
	}
	return v, loaded, nil
}

// Delete removes a key, if it is there. It costs one request.
func (m *Map[K, V]) Delete(ctx context.Context, k K) error {
	return m.made().of(ctx, "delete", table.FromLeader, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		_, err := m.t.Remove(ctx, e, key)
		return err
	})
}

// Swap sets the value of a key and returns the one before; loaded is false if there was none. It costs two requests.
func (m *Map[K, V]) Swap(ctx context.Context, k K, v V) (previous V, loaded bool, err error) {
	err = m.made().change(ctx, "swap", table.ToExist, k, func(key string, found table.Entry) (table.Decision, error) {
		data, err := m.encode(key, v)
		if err != nil {
			return table.Decision{}, err
		}
		var none V
		if previous, loaded = none, found.There; loaded {
			previous, err = m.decode(found)
		}
		return table.Decision{Do: table.Put, Data: data}, err
	})
	if err != nil {
		var none V
		return none, false, err
	}
	return previous, loaded, nil
}

// CompareAndSwap sets the value of a key to new if it is old, and reports whether it did. Values are equal if
// they are encoded as the same bytes. It costs two requests, and three if the value is another one.
func (m *Map[K, V]) CompareAndSwap(ctx context.Context, k K, old, new V) (swapped bool, err error) {
	return m.made().compareAnd(ctx, "compare-and-swap", k, old, func(key string) (table.Decision, error) {
		data, err := m.encode(key, new)
		return table.Decision{Do: table.Put, Data: data}, err
	})
}

// CompareAndDelete removes a key if its value is old, and reports whether it did. It costs as much as CompareAndSwap.
func (m *Map[K, V]) CompareAndDelete(ctx context.Context, k K, old V) (deleted bool, err error) {
	return m.made().compareAnd(ctx, "compare-and-delete", k, old, func(string) (table.Decision, error) { return table.Decision{Do: table.Drop}, nil })
}

func (m *Map[K, V]) compareAnd(ctx context.Context, op string, k K, old V, then func(key string) (table.Decision, error)) (equal bool, err error) {
	err = m.change(ctx, op, table.FromLeader, k, func(key string, found table.Entry) (table.Decision, error) {
		want, err := m.encode(key, old)
		if err != nil {
			return table.Decision{}, err
		}
		if equal = found.There && bytes.Equal(want, found.Data); !equal {
			return table.Decision{}, nil
		}
		return then(key)
	})
	return equal && err == nil, err
}

// Update sets the value of a key to what f returns for the present one; ok is false if there is none. If f returns keep
// false, the key is removed, and Update returns the zero value. f may run again, if the key was changed meanwhile, or in
// the next session. An error of f ends the call, and nothing is written. f is given what was there at an instant of the call.
//
// It costs three requests: f must not decide by an old value, so a sync comes first.
func (m *Map[K, V]) Update(ctx context.Context, k K, f func(old V, ok bool) (new V, keep bool, err error)) (V, error) {
	var result V
	var failed error // of f
	err := m.made().of(ctx, "update", table.ToExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		return m.t.Change(ctx, e, key, true, func(found table.Entry) (d table.Decision, err error) {
			var old V
			if found.There {
				if old, err = m.decode(found); err != nil {
					return d, err
				}
			}
			v, keep, err := f(old, found.There)
			switch failed = err; {
			case err != nil:
				return d, errOfUser
			case keep:
				result, d.Do = v, table.Put
				d.Data, err = m.encode(key, v)
				return d, err
			case found.There:
				d.Do = table.Drop
			}
			var none V
			result = none
			return d, nil
		})
	})
	if failed != nil { // also if ctx has ended meanwhile
		err = errs.Wrap("update", m.at.Path, errs.Settled(failed))
	}
	if err != nil {
		var none V
		return none, err
	}
	return result, nil
}

// errOfUser means that a function of the user has failed. Its error must not be taken for one of the servers.
var errOfUser = errors.New("the function failed")

// change is table.change for one key, whose text decide is given, too.
func (m *Map[K, V]) change(ctx context.Context, op string, need table.Need, k K, decide func(key string, found table.Entry) (table.Decision, error)) error {
	return m.of(ctx, op, need, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		return m.t.Change(ctx, e, key, false, func(found table.Entry) (table.Decision, error) { return decide(key, found) })
	})
}
