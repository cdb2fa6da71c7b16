package storm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// untold is how long a lease may be worth nothing before its holder has been told.
const untold = time.Second

// hold is something that an actor holds by a lease.
type hold struct {
	a      *actor
	path   string
	shared bool  // among those that are shared too
	weight int64 // permits; 0 for locks
	limit  int64 // of these, the most that there were while it was asked for
	l      *zksync.Lease
	stale  time.Time // since when it has not been valid
}

// ledger is who holds what on one path.
type ledger struct {
	holds         []*hold
	written, seen zksync.Token // the newest of exclusive ones, of all
}

// granted enters a lease. Of all holds that can be proved at this instant no two may conflict, and tokens grow. limit is how
// many permits there were at most while it was asked for.
func (a *actor) granted(path string, l *zksync.Lease, shared bool, weight, limit int64) *hold {
	w := a.w
	h := &hold{a: a, path: path, shared: shared, weight: weight, limit: limit, l: l}
	b := w.enters(h)
	if !l.Valid() {
		return h // it may have been lost long ago: nothing follows from it
	}
	w.mu.Lock()
	written, seen := b.written, b.seen
	if l.Token().Compare(seen) > 0 {
		b.seen = l.Token()
	}
	if !shared && l.Token().Compare(written) > 0 {
		b.written = l.Token()
	}
	w.mu.Unlock()
	if weight == 0 && !w.meter.excused(l) {
		w.must(l.Token().Compare(written) > 0 && (shared || l.Token().Compare(seen) > 0), "%s: token %s of %s is not greater than %s, %s",
			path, l.Token(), a.name, written, seen)
	}
	w.exclude(path, h)
	return h
}

// enters writes a hold down.
func (w *world) enters(h *hold) *ledger {
	w.tell("%s/%s holds %s %s", h.a.h, h.a.name, h.l.Node(), h.l.Token())
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.books[h.path]
	if b == nil {
		b = &ledger{}
		w.books[h.path] = b
	}
	b.holds = append(b.holds, h)
	return b
}

// exclude looks whether the holds that are valid now go together with one of them. Of permits that is a matter of
// the one that queued last, which was granted while all the others stood ahead of it: see Weighted.Resize.
func (w *world) exclude(path string, h *hold) {
	if w.meter.excused(h.l) {
		return
	}
	w.mu.Lock()
	holds := slices.Clone(w.books[path].holds)
	w.mu.Unlock()
	var sum int64
	last := h
	for _, o := range holds {
		if w.meter.excused(o.l) || !o.l.Valid() {
			continue
		}
		sum += o.weight
		if o.l.Token().Compare(last.l.Token()) > 0 {
			last = o
		}
		if o == h || o.weight > 0 || o.shared && h.shared {
			continue
		}
		w.must(!h.l.Valid(), "%s: %s (%s) and %s (%s) both hold", path, h.a.name, h.l.Node(), o.a.name, o.l.Node())
	}
	w.must(h.weight == 0 || sum <= last.limit, "%s: %d permits of %d are held", path, sum, last.limit)
}

// ends takes a hold out, before its lease is given back.
func (h *hold) ends() {
	w := h.a.w
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.books[h.path]
	b.holds = slices.DeleteFunc(slices.Clone(b.holds), func(o *hold) bool { return o == h })
}

// keep holds for a while, looks at the lease meanwhile, and gives it back.
func (a *actor) keep(h *hold) {
	a.work(h)
	h.ends()
	a.tell("Unlock "+h.l.Token().String(), h.l.Unlock, zksync.ErrLost)
}

// work is what an actor does while it holds.
func (a *actor) work(h *hold) {
	d := a.upTo(200 * ms)
	if a.oneIn(15) {
		d = a.upTo(15 * time.Second)
	}
	switch a.rnd.IntN(5) {
	case 4:
		select {
		case <-h.l.Revoked():
		case <-h.l.Done():
		case <-time.After(d):
		}
	case 0:
		select {
		case <-h.l.Done():
			a.w.must(h.l.Err() != nil && !h.l.Valid(), "%s: Done is closed, Err is %v", h.path, h.l.Err())
		case <-time.After(d):
		}
	case 1:
		a.verify(h)
	default:
		time.Sleep(d)
	}
}

// verify asks the servers whether the token is the newest: of a lease that stays valid it is. Only a lock can be asked for.
func (a *actor) verify(h *hold) {
	if !strings.HasPrefix(h.l.Node(), h.path+"/") {
		return
	}
	c := a.ask("Verify "+h.path, func(ctx context.Context) error {
		return zksync.Verify(ctx, a.h.session(), h.path, h.l.Token())
	}, zksync.ErrStale)
	if errors.Is(c.err, zksync.ErrStale) && !a.w.meter.excused(h.l) {
		a.w.must(!h.l.Valid(), "%s: %v, and the lease is valid", c, c.err)
	}
}

// watch looks at all holds now and then, until done: what is not valid is told.
func (w *world) watch(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(250 * ms):
		}
		w.mu.Lock()
		var holds []*hold
		for _, b := range w.books {
			holds = append(holds, b.holds...)
		}
		w.mu.Unlock()
		for _, h := range holds {
			switch {
			case h.l.Valid() || h.l.Err() != nil:
				h.stale = time.Time{}
			case h.stale.IsZero():
				h.stale = time.Now()
			case time.Since(h.stale) > untold:
				w.must(false, "%s: the lease of %s is not valid, and that is never told", h.path, h.a.name)
				h.stale = time.Now().Add(time.Hour)
			}
			if h.l.Valid() && h.weight == 0 {
				w.exclude(h.path, h)
			}
		}
	}
}

// checkIdle looks whether anybody holds although all have gone home.
func (w *world) checkIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, b := range w.books {
		for _, h := range b.holds {
			w.wrong = append(w.wrong, path+": "+h.a.name+" still holds")
		}
	}
}
