package elements

import (
	"context"
	"math"
	"slices"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// memory is the newest listing of the elements, if most of them are delayed: they are in the next one, too.
type memory struct {
	listing zkconn.Listing
	removed map[string]bool // by this object since
}

// worth is from how many names on a listing costs more than the two requests of recall.
const worth = 64

// remember notes the listing of the elements from which a view was made.
func (q *Queue) remember(v *View, l zkconn.Listing) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.memory = nil; l.Stat != nil && len(l.Names) >= worth && v.sparse && len(v.later) > 0 {
		q.memory = &memory{l, map[string]bool{}}
	}
}

// gone notes that this object has removed an element.
func (q *Queue) gone(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.memory != nil {
		q.memory.removed[name] = true
	}
}

// recall returns what is left of the listing that was remembered, and has the listener hear of the next change. ok says that a
// listing would show the same now.
//
// The servers count in Cversion each node that is made in a directory, and each that is deleted. What this object has removed
// of the listing it has removed since. This server knows of that: the caller has made its place in line in this session, after the
// answers to those removals. If nothing else was counted, nothing else has changed, in whichever session. But past the
// last sequence number nothing that is made is counted, so Cversion proves nothing.
func (q *Queue) recall(ctx context.Context, e *zkconn.Epoch, changes *record.Listener) (now zkconn.Listing, ok bool, err error) {
	q.mu.Lock()
	m := q.memory
	if ok = m != nil; ok {
		now.Names = slices.DeleteFunc(slices.Clone(m.listing.Names), func(name string) bool { return m.removed[name] })
	}
	q.mu.Unlock()
	if !ok {
		return now, false, nil
	}
	changes.Names(q.dir("elements"))
	if now.Stat, ok, err = e.Exists(ctx, q.dir("elements")); ok {
		then, gone := m.listing.Stat, int32(len(m.listing.Names)-len(now.Names))
		made := uint32(now.Stat.Cversion+now.Stat.NumChildren) / 2
		ok = now.Stat.Czxid == then.Czxid && now.Stat.Cversion == then.Cversion+gone && made < math.MaxInt32
	}
	return now, ok, err
}
