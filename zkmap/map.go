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
	"github.com/go-menagerie/menagerie/zksync"
)

// Map is a map that many processes share, with the methods of sync.Map and some of ConcurrentMap.
//
// The error is zksync.ErrMisuse if a key or a value cannot be encoded or does not fit into a request, and
// zksync.ErrBroken if nodes of the map were removed externally.
type Map[K comparable, V any] struct{ keyed[K] }

// keyed is what a map and a set have in common.
type keyed[K comparable] struct {
	at   *session.Access
	t    *table.Table
	keys codec.Keys[K]
}

// New names a map. K is a string type, an integer type, or a type with the methods of encoding.TextMarshaler
// and TextUnmarshaler.
func New[K comparable, V any](s *zksync.Session, path string, opts ...zksync.Option) *Map[K, V] {
	return &Map[K, V]{newKeyed[K](session.NewValueAccess("zkmap", (*session.Session)(s), path, opts), layout.Map)}
}

func newKeyed[K comparable](at *session.Access, kind string) keyed[K] {
	keys, err := codec.KeysOf[K]()
	at.Refuse(err)
	return keyed[K]{at, table.New(at, kind), keys}
}

// made is m, which New has made. For a zero or nil value it panics.
func (m *Map[K, V]) made() *Map[K, V] {
	if m == nil || m.at == nil {
		panic(errs.Unmade("zkmap", "a Map", "New"))
	}
	return m
}

// key encodes a key. After a misuse of the constructor there may be no rules for that, and the call reports the misuse.
func (m *keyed[K]) key(k K) (key table.Key) {
	if m.at.Misuse() == nil {
		key.Text, key.Err = m.keys.Encode(k)
	}
	return key
}

// decodeKey decodes a key. The error names the node.
func (m *keyed[K]) decodeKey(key, node string) (K, error) {
	k, err := m.keys.Decode(key)
	if err != nil {
		err = errors.Join(table.NotAKey(node), err)
	}
	return k, err
}

// encode encodes a value for a request that changes the entry.
func (m *Map[K, V]) encode(p *table.Place, v V) ([]byte, error) {
	return codec.Encode(m.at.Settings.Codec, v, p.Overhead())
}

// decode decodes the value of an entry that is there.
func (m *Map[K, V]) decode(found table.Entry) (V, error) {
	return codec.Decode[V](m.at.Settings.Codec, found.Data, found.Node)
}

// Load returns the value of a key; ok is false if there is none. It is never older than what this session has
// seen or written, but a recent change by another session may be missing. Update and LoadOrStore read the
// newest value.
func (m *Map[K, V]) Load(ctx context.Context, k K) (v V, ok bool, err error) {
	err = m.made().t.RunAt(ctx, "load", table.FromHere, m.key(k), func(p *table.Place) error {
		found, err := p.Get()
		if err != nil || !found.There {
			return err
		}
		v, err = m.decode(found)
		ok = err == nil
		return err
	})
	return v, ok, err
}

// Store sets the value of a key.
func (m *Map[K, V]) Store(ctx context.Context, k K, v V) error {
	return m.made().t.RunAt(ctx, "store", table.ToExist, m.key(k), func(p *table.Place) error {
		data, err := m.encode(p, v)
		if err != nil {
			return err
		}
		return p.Store(data)
	})
}

// LoadOrStore returns the value of a key, with loaded true, or else stores v and returns that.
func (m *Map[K, V]) LoadOrStore(ctx context.Context, k K, v V) (actual V, loaded bool, err error) {
	err = m.made().t.RunAt(ctx, "load-or-store", table.ToExist, m.key(k), func(p *table.Place) error {
		data, err := m.encode(p, v)
		if err != nil {
			return err
		}
		found, err := p.LoadOrCreate(data)
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

// LoadAndDelete removes a key and returns its value; loaded is false if there was none.
func (m *Map[K, V]) LoadAndDelete(ctx context.Context, k K) (v V, loaded bool, err error) {
	return m.made().exchange(ctx, "load-and-delete", table.FromLeader, k, false, func(_ *table.Place, _ V, there bool) (d table.Decision, err error) {
		if there {
			d.Do = table.Drop
		}
		return d, nil
	})
}

// Delete removes a key, if it is there.
func (m *Map[K, V]) Delete(ctx context.Context, k K) error {
	return m.made().t.RunAt(ctx, "delete", table.FromLeader, m.key(k), func(p *table.Place) error {
		_, err := p.Remove()
		return err
	})
}

// Swap sets the value of a key and returns the one before; loaded is false if there was none.
func (m *Map[K, V]) Swap(ctx context.Context, k K, v V) (previous V, loaded bool, err error) {
	return m.made().exchange(ctx, "swap", table.ToExist, k, false, func(p *table.Place, _ V, _ bool) (table.Decision, error) {
		data, err := m.encode(p, v)
		return table.Decision{Do: table.Put, Data: data}, err
	})
}

// CompareAndSwap sets the value of a key to new if it is old, by the encoded bytes, and reports whether it
// did.
func (m *Map[K, V]) CompareAndSwap(ctx context.Context, k K, old, new V) (swapped bool, err error) {
	return m.made().compareAnd(ctx, "compare-and-swap", k, old, func(p *table.Place) (table.Decision, error) {
		data, err := m.encode(p, new)
		return table.Decision{Do: table.Put, Data: data}, err
	})
}

// CompareAndDelete removes a key if its value is old, and reports whether it did.
func (m *Map[K, V]) CompareAndDelete(ctx context.Context, k K, old V) (deleted bool, err error) {
	return m.made().compareAnd(ctx, "compare-and-delete", k, old, func(*table.Place) (table.Decision, error) { return table.Decision{Do: table.Drop}, nil })
}

func (m *Map[K, V]) compareAnd(ctx context.Context, op string, k K, old V, then func(p *table.Place) (table.Decision, error)) (equal bool, err error) {
	err = m.t.RunAt(ctx, op, table.FromLeader, m.key(k), func(p *table.Place) error {
		want, err := m.encode(p, old)
		if err != nil {
			return err
		}
		return p.Change(false, func(found table.Entry) (table.Decision, error) {
			if equal = found.There && bytes.Equal(want, found.Data); !equal {
				return table.Decision{}, nil
			}
			return then(p)
		})
	})
	return equal && err == nil, err
}

// Update sets the value of a key to what f returns for the present one, and returns that; ok is false if
// there is none. If f returns keep false, the key is removed. f may run again if the key was changed
// meanwhile, or in the next session. If f fails, nothing is written.
func (m *Map[K, V]) Update(ctx context.Context, k K, f func(old V, ok bool) (new V, keep bool, err error)) (V, error) {
	var result, none V
	var failed error // of f
	_, _, err := m.made().exchange(ctx, "update", table.ToExist, k, true, func(p *table.Place, old V, there bool) (d table.Decision, err error) {
		v, keep, err := f(old, there)
		result = none
		switch failed = err; {
		case err != nil:
			err = errOfUser
		case keep:
			result, d.Do = v, table.Put
			d.Data, err = m.encode(p, v)
		case there:
			d.Do = table.Drop
		}
		return d, err
	})
	if failed != nil { // also if ctx has ended meanwhile
		err = m.at.Named("update", errs.Settled(failed))
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

// errOfUser means that a function of the user has failed. Its error must not be taken for one of the servers.
var errOfUser = errors.New("the function failed")

// exchange makes a change that depends on the value, and returns the value before it: see [table.Place.Change].
func (m *Map[K, V]) exchange(ctx context.Context, op string, need table.Need, k K, sure bool,
	decide func(p *table.Place, old V, there bool) (table.Decision, error)) (old V, there bool, err error) {
	var none V
	err = m.t.RunAt(ctx, op, need, m.key(k), func(p *table.Place) error {
		return p.Change(sure, func(found table.Entry) (d table.Decision, err error) {
			if old, there = none, found.There; there {
				old, err = m.decode(found)
			}
			if err == nil {
				d, err = decide(p, old, there)
			}
			return d, err
		})
	})
	if err != nil {
		return none, false, err
	}
	return old, there, nil
}
