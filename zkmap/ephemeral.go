package zkmap

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/table"
)

// StoreEphemeral sets the value of a key that goes with this session: when the session is lost or closed, the key is
// removed. Call it again after a loss. If another session keeps the key, the error is zksync.ErrMisuse, and names
// that session.
//
// All sessions may change the value or delete the key as any other, and it goes with this session all the same. Once
// it was deleted, Store makes one that stays.
func (m *Map[K, V]) StoreEphemeral(ctx context.Context, k K, v V) error {
	return m.made().t.RunAt(ctx, "store-ephemeral", table.ToExist, m.key(k), func(p *table.Place) error {
		data, err := codec.Encode(m.at.Settings.Codec, v, 2*p.Overhead()) // it may replace a node
		if err != nil {
			return err
		}
		return p.Keep(data)
	})
}
