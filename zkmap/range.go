package zkmap

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/table"
)

// Len is the number of keys. It counts bucket by bucket, so keys that come or go meanwhile may be counted or not. It costs
// two requests, and one for each bucket, of which there are at most 256, and not more than there were keys.
func (m *Map[K, V]) Len(ctx context.Context) (int, error) { return m.made().t.Len(ctx) }

// Clear removes all keys that are there when it begins. It is not one change: it removes at most 500 keys, all of one bucket, in
// one transaction. If it fails, some of the keys may be removed. It costs two requests, and two or more for each bucket.
func (m *Map[K, V]) Clear(ctx context.Context) error { return m.made().t.Clear(ctx) }

// Range calls f for each key, in no order, until f returns false. Each key is told once, if it is there at all during the
// call, with the value that it had at some moment of the call; a key that comes or goes meanwhile may be told or
// not. So it is not a snapshot of all. f may change the map, also the key that it is given.
//
// If a key or a value cannot be decoded, Range ends with an error that names the node. It costs two requests, one for each
// bucket, and one for each key; up to 64 reads are under way at one time.
func (m *Map[K, V]) Range(ctx context.Context, f func(k K, v V) bool) error {
	return m.made().t.Each(ctx, "range", true, func(key string, found table.Entry) error {
		k, err := decodeKey(m.keys, key, found.Node)
		if err != nil {
			return err
		}
		v, err := m.decode(found)
		if err == nil && !f(k, v) {
			err = table.ErrStop
		}
		return err
	})
}

// decodeKey decodes a key. The error says to which node it belongs.
func decodeKey[K comparable](of codec.Keys[K], key, path string) (K, error) {
	k, err := of.Decode(key)
	if err != nil {
		err = errors.Join(table.NotAKey(path), err)
	}
	return k, err
}
