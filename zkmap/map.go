package zkmap

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
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
	t     *table
	keys  keys[K]
	codec codec.Codec
}

// New names a map by a path of its own, which is made when the map is first changed. K is a string type, an
// integer type, or a type with the methods of encoding.TextMarshaler and TextUnmarshaler. Values are JSON, unless
// zksync.WithCodec says otherwise. All processes must use the same types and the same codec.
//
// New does no I/O. The first call reports a malformed path, another type K, a nil session, or an option that does not
// belong to a map as zksync.ErrMisuse.
func New[K comparable, V any](s *zksync.Session, path string, opts ...zksync.Option) *Map[K, V] {
	t, of := newKeyed[K](s, path, layout.Map, opts)
	return &Map[K, V]{t: t, keys: of, codec: t.at.Settings.Codec}
}

// newKeyed is a table with the rules for its keys.
func newKeyed[K comparable](s *zksync.Session, path, kind string, opts []zksync.Option) (*table, keys[K]) {
	t := newTable(s, path, kind, opts)
	of, err := keysOf[K]()
	if t.misuse == nil {
		t.misuse = err
	}
	return t, of
}

// of runs f for one key, in the present session, and again in the next one if that ends.
func (m *Map[K, V]) of(ctx context.Context, op string, need need, k K, f func(ctx context.Context, e *zkconn.Epoch, key string) error) error {
	return of(ctx, m.t, m.keys, op, need, k, f)
}

// of does not run f if there is no such map: then no key is there.
func of[K comparable](ctx context.Context, t *table, of keys[K], op string, need need, k K,
	f func(ctx context.Context, e *zkconn.Epoch, key string) error) error {
	return t.in(ctx, op, need, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if !there {
			return nil
		}
		key, err := of.encode(k)
		if err != nil {
			return err
		}
		if n := len(nameOf(key)); n > maxName {
			return fmt.Errorf("%w: the key takes %d bytes in the name of its node, and at most %d are taken", zksync.ErrMisuse, n, maxName)
		}
		return f(ctx, e, key)
	})
}

// encode encodes a value for a request that changes the entry of a key.
func (m *Map[K, V]) encode(key string, v V) ([]byte, error) {
	p := m.t.place(key)
	const rest = 512 // headers, versions, and the writer's node with its data
	return codec.Encode(m.codec, v, 4*len(p.bucket)+len(p.entry)+3*record.ACLSize(m.t.at.ACL())+rest)
}

// decode decodes the value of an entry that is there.
func (m *Map[K, V]) decode(found entry) (V, error) {
	return codec.Decode[V](m.codec, found.data, found.path)
}

// Load returns the value of a key; ok is false if there is none. It is what the session's server knows: never older than
// what this session has seen or written before. What another session has just changed may arrive a moment later, as long as a
// server can lag behind. To read the newest value, use Update or LoadOrStore. It costs one request.
func (m *Map[K, V]) Load(ctx context.Context, k K) (v V, ok bool, err error) {
	err = m.of(ctx, "load", fromHere, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		found, err := m.t.get(ctx, e, m.t.place(key))
		if err != nil || !found.there {
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
	return m.of(ctx, "store", toExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		data, err := m.encode(key, v)
		if err != nil {
			return err
		}
		return m.t.store(ctx, e, key, data)
	})
}

// LoadOrStore returns the value of a key, with loaded true. If there is none, it stores v and returns that. It
// costs one request if it stores, one more for the first key of a bucket, and two if it loads.
func (m *Map[K, V]) LoadOrStore(ctx context.Context, k K, v V) (actual V, loaded bool, err error) {
	err = m.of(ctx, "load-or-store", toExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		data, err := m.encode(key, v)
		if err != nil {
			return err
		}
		p := m.t.place(key)
		for pace := (node.Pace{Free: 1}); ; {
			made, err := m.t.create(ctx, e, p, data, false)
			if err != nil {
				return err
			}
			if made {
				actual = v
				return nil
			}
			// The refusal came through this server, so it knows the entry, or its removal since.
			found, err := m.t.get(ctx, e, p)
			if err != nil {
				return err
			}
			if found.there {
				actual, err = m.decode(found)
				loaded = err == nil
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	return actual, loaded, err
}

// LoadAndDelete removes a key and returns the value that it had; loaded is false if there was none. It costs two requests,
// and three if there is none.
func (m *Map[K, V]) LoadAndDelete(ctx context.Context, k K) (v V, loaded bool, err error) {
	err = m.change(ctx, "load-and-delete", fromLeader, k, func(_ string, found entry) (d decision, err error) {
		var none V
		if v, loaded = none, found.there; !loaded {
			return d, nil
		}
		v, err = m.decode(found)
		return decision{do: drop}, err
	})
	if err != nil {
		var none V
		return none, false, err
	}
	return v, loaded, nil
}

// Delete removes a key, if it is there. It costs one request.
func (m *Map[K, V]) Delete(ctx context.Context, k K) error {
	return m.of(ctx, "delete", fromLeader, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		_, err := m.t.removeOne(ctx, e, key)
		return err
	})
}

// Swap sets the value of a key and returns the one before; loaded is false if there was none. It costs two requests.
func (m *Map[K, V]) Swap(ctx context.Context, k K, v V) (previous V, loaded bool, err error) {
	err = m.change(ctx, "swap", toExist, k, func(key string, found entry) (decision, error) {
		data, err := m.encode(key, v)
		if err != nil {
			return decision{}, err
		}
		var none V
		if previous, loaded = none, found.there; loaded {
			previous, err = m.decode(found)
		}
		return decision{put, data}, err
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
	return m.compareAnd(ctx, "compare-and-swap", k, old, func(key string) (decision, error) {
		data, err := m.encode(key, new)
		return decision{put, data}, err
	})
}

// CompareAndDelete removes a key if its value is old, and reports whether it did. It costs as much as CompareAndSwap.
func (m *Map[K, V]) CompareAndDelete(ctx context.Context, k K, old V) (deleted bool, err error) {
	return m.compareAnd(ctx, "compare-and-delete", k, old, func(string) (decision, error) { return decision{do: drop}, nil })
}

func (m *Map[K, V]) compareAnd(ctx context.Context, op string, k K, old V, then func(key string) (decision, error)) (equal bool, err error) {
	err = m.change(ctx, op, fromLeader, k, func(key string, found entry) (decision, error) {
		want, err := m.encode(key, old)
		if err != nil {
			return decision{}, err
		}
		if equal = found.there && bytes.Equal(want, found.data); !equal {
			return decision{}, nil
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
	err := m.of(ctx, "update", toExist, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		return m.t.change(ctx, e, key, true, func(found entry) (d decision, err error) {
			var old V
			if found.there {
				if old, err = m.decode(found); err != nil {
					return d, err
				}
			}
			v, keep, err := f(old, found.there)
			switch {
			case err != nil:
				return d, err
			case keep:
				result, d.do = v, put
				d.data, err = m.encode(key, v)
				return d, err
			case found.there:
				d.do = drop
			}
			var none V
			result = none
			return d, nil
		})
	})
	if err != nil {
		var none V
		return none, err
	}
	return result, nil
}

// change is table.change for one key, whose text decide is given, too.
func (m *Map[K, V]) change(ctx context.Context, op string, need need, k K, decide func(key string, found entry) (decision, error)) error {
	return m.of(ctx, op, need, k, func(ctx context.Context, e *zkconn.Epoch, key string) error {
		return m.t.change(ctx, e, key, false, func(found entry) (decision, error) { return decide(key, found) })
	})
}
