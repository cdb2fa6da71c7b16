package zkatomic

import (
	"context"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/follow"
)

// Snapshot is a value at one time.
type Snapshot[T any] struct {
	Value T
	OK    bool // false without a value
	// Version counts the changes, also those by Delete, so that no later state has it again. It is 0 of a value that
	// was never changed. Of a key of a map it grows with each change, and is 0 without a value.
	Version int64
	// Skipped is how many changes the loop has left out before.
	Skipped int
}

// Watch is a loop over the present value, and then every later one, through disconnects and new sessions. It
// may leave some out, and comes to the latest. The loop ends with ctx, whose error comes last. After a value
// that cannot be decoded it goes on. If the nodes are removed externally, the versions begin again.
func (v *Value[T]) Watch(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return watch(ctx, v.made().cell, func(now cell.Content) (T, bool, error) {
		v.shown.Store(now.Founded)
		return v.decode("watch", now)
	})
}

// Watch is [Value.Watch] for a number. There is always a value: 0 at first.
func (n *Int64) Watch(ctx context.Context) iter.Seq2[Snapshot[int64], error] {
	return watch(ctx, n.made().cell, func(now cell.Content) (int64, bool, error) {
		v, err := number(n.cell, now)
		return v, err == nil, err
	})
}

func watch[T any](ctx context.Context, c *cell.Cell, decode func(cell.Content) (T, bool, error)) iter.Seq2[Snapshot[T], error] {
	return func(yield func(Snapshot[T], error) bool) {
		if err := c.Make(ctx, "watch"); err != nil {
			yield(Snapshot[T]{}, err)
			return
		}
		var last *zk.Stat
		gone := false // the loop has seen that there is no node
		for n, err := range follow.Data(ctx, c.At, c.Node()) {
			s := Snapshot[T]{}
			if err == nil {
				if again := gone && n.Stat != nil && n.Stat.Version == 0; again {
					last, gone = n.Stat, false
					continue // the nodes were made again, and there is still no value
				}
				s, err = snapshot(n, last, decode)
				last, gone = n.Stat, n.Stat == nil
			}
			if !yield(s, c.At.Named("watch", err)) {
				return
			}
		}
	}
}

// snapshot is the snapshot of a state of the node. last is the state before; nil at first, and if there was no node.
func snapshot[T any](now follow.Node, last *zk.Stat, decode func(cell.Content) (T, bool, error)) (s Snapshot[T], err error) {
	var content cell.Content
	if now.Stat != nil {
		content = cell.ContentOf(now.Data, now.Stat)
		if last != nil && last.Czxid == now.Stat.Czxid {
			s.Skipped = int(now.Stat.Version-last.Version) - 1 // also when the version has passed its greatest number
		}
	}
	s.Version = content.Version
	s.Value, s.OK, err = decode(content)
	return s, err
}
