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
	// Version counts the changes.
	Version int64
	// Skipped is how many changes the loop has left out before.
	Skipped int
}

// Watch is a loop over the present value, and then every later one, through disconnects and new sessions. It
// may leave some out, and comes to the latest. The loop ends with ctx, whose error comes last. After a value
// that cannot be decoded it goes on. If the nodes are removed externally, the versions begin again.
func (v *Value[T]) Watch(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return func(yield func(Snapshot[T], error) bool) {
		if err := v.made().cell.Make(ctx, "watch"); err != nil {
			yield(Snapshot[T]{}, err)
			return
		}
		var last *zk.Stat
		gone := false // the loop has seen that there is no node
		for n, err := range follow.Data(ctx, v.cell.At, v.cell.Node()) {
			s := Snapshot[T]{}
			if err == nil {
				s, err = v.snapshot(n, last)
				last = n.Stat
				if again := gone && err == nil && !s.OK && s.Version == 0; again {
					continue // the nodes were made again, and there is still no value
				}
				gone = n.Stat == nil
			}
			if !yield(s, v.cell.At.Named("watch", err)) {
				return
			}
		}
	}
}

// snapshot is the snapshot of a state of the node. last is the state before; nil at first, and if there was no node.
func (v *Value[T]) snapshot(now follow.Node, last *zk.Stat) (s Snapshot[T], err error) {
	if now.Stat == nil {
		return s, nil
	}
	s.Version = int64(now.Stat.Version)
	if last != nil && last.Czxid == now.Stat.Czxid {
		s.Skipped = int(now.Stat.Version-last.Version) - 1 // also when the version has passed its greatest number
	}
	s.Value, s.OK, err = v.decode("watch", cell.ContentOf(now.Data, now.Stat))
	return s, err
}
