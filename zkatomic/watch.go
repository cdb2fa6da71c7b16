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
	OK    bool // false if there is no value
	// Version counts the changes of the value.
	Version int64
	// Skipped is how many changes came since the snapshot before this one, and were not seen.
	Skipped int
}

// Watch returns a loop over the present value, and then every later one. If changes follow each other quickly, or during
// a disconnect, the loop leaves some out, and the next snapshot says how many. It never goes back, also in a new session,
// and it comes to the latest value.
//
// The loop waits for changes until ctx ends, through disconnects and new sessions. Then it has one more element, with the
// error. So it has if the session is closed (zksync.ErrClosed), or if the path belongs to another type
// (zksync.ErrMisuse). A value that cannot be decoded is an element with an error that names the node; the loop goes on
// after that. If somebody removes the nodes by hand, the loop tells that there is no value, and the versions begin anew.
//
// The beginning costs two requests, and a few more if nobody has used the path: Watch creates it. Each change costs one,
// and so does leaving the loop.
func (v *Value[T]) Watch(ctx context.Context) iter.Seq2[Snapshot[T], error] {
	return func(yield func(Snapshot[T], error) bool) {
		if err := v.made().cell.Make(ctx); err != nil {
			yield(Snapshot[T]{}, v.wrap("watch", err))
			return
		}
		var last *zk.Stat
		gone := false // it was told that there is no node
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
			if !yield(s, v.wrap("watch", err)) {
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
	s.Value, s.OK, err = v.decode(cell.ContentOf(now.Data, now.Stat))
	return s, err
}
