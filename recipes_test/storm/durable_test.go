package storm_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
)

const durablePath = "/storm/durable"

// durables are one lock that outlives sessions. Each actor is an owner.
type durables struct {
	mu    sync.Mutex
	holds map[zksync.Token]string // and whose
	ended map[zksync.Token]bool   // or somebody has begun to end them
}

func joinDurable(*world) *part {
	x := &durables{holds: map[zksync.Token]string{}, ended: map[zksync.Token]bool{}}
	return &part{actors: 4, act: x.act, release: x.release, use: x.use}
}

func (*durables) object(a *actor) *zkdurable.Mutex {
	return thing(a.h, "durable", func(s *zksync.Session) *zkdurable.Mutex { return zkdurable.NewMutex(s, durablePath) })
}

func (x *durables) act(a *actor) {
	m := x.object(a)
	var h *zkdurable.Hold
	var c *call
	switch a.rnd.IntN(7) {
	case 0:
		x.breaks(a)
		return
	case 1:
		a.ask("Holder", func(ctx context.Context) error { _, err := m.Holder(ctx); return err })
		return
	case 2, 3:
		c = a.ask("Resume", func(ctx context.Context) (err error) { h, err = m.Resume(ctx, a.name); return err }, zksync.ErrNotAcquired)
	case 4:
		c = a.ask("TryLockContext", func(ctx context.Context) (err error) { h, err = m.TryLock(ctx, a.name); return err },
			zksync.ErrNotAcquired, zksync.ErrMisuse, errUnknown)
		x.grants(c, h)
	default:
		c = a.ask("LockContext", func(ctx context.Context) (err error) { h, err = m.Lock(ctx, a.name); return err }, zksync.ErrMisuse, errUnknown)
		x.grants(c, h)
	}
	if c.err == nil {
		x.keeps(a, h)
	}
}

// grants enters a new hold: each was ended before the next one was granted. It may be told late.
func (x *durables) grants(c *call, h *zkdurable.Hold) {
	if c.err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	me := h.Token()
	c.a.w.must(x.holds[me] == "", "%s: token %s, which %s has had", c, me, x.holds[me])
	x.holds[me] = c.a.name
	for o, owner := range x.holds {
		c.a.w.must(o.Compare(me) >= 0 || x.ended[o], "%s: token %s, and the hold %s of %s was not ended", c, me, o, owner)
		c.a.w.must(o.Compare(me) <= 0 || x.ended[me], "%s: token %s was not ended, and %s has %s", c, me, owner, o)
	}
}

// ends is called before somebody ends a hold.
func (x *durables) ends(t zksync.Token) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended[t] = true
}

// keeps has a hold, and ends it or leaves it to the next process of the owner.
func (x *durables) keeps(a *actor, h *zkdurable.Hold) {
	select {
	case <-h.Done():
		a.w.must(h.Err() != nil, "durable: Done is closed, and there is no error")
	case <-time.After(a.upTo(2 * time.Second)):
	}
	if a.oneIn(4) {
		a.ask("SetNote", func(ctx context.Context) error { return h.SetNote(ctx, a.name) }, zksync.ErrLost, zksync.ErrReleased, errUnknown)
	}
	if a.oneIn(5) {
		return
	}
	x.ends(h.Token())
	a.ask("Unlock", h.Unlock, zksync.ErrLost, errUnknown)
}

func (x *durables) breaks(a *actor) {
	m := x.object(a)
	var who zkdurable.Holder
	c := a.ask("Holder", func(ctx context.Context) (err error) { who, err = m.Holder(ctx); return err })
	if c.err != nil || who.Owner == "" {
		return
	}
	x.ends(who.Token)
	a.ask("Break", func(ctx context.Context) error { return m.Break(ctx, who.Token, "on purpose") }, zksync.ErrStale, errUnknown)
}

// release ends the hold of the moment.
func (x *durables) release(a *actor) { x.breaks(a) }

func (x *durables) use(w *world) {
	w.all("Break at last", 1, func(ctx context.Context, a *actor, _ int) error {
		who, err := x.object(a).Holder(ctx)
		if err != nil || who.Owner == "" {
			return err
		}
		x.ends(who.Token)
		err = x.object(a).Break(ctx, who.Token, "at last")
		if errors.Is(err, zksync.ErrStale) {
			err = nil
		}
		return err
	})
	w.all("LockContext at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		h, err := x.object(a).Lock(ctx, a.name)
		if err != nil {
			return err
		}
		x.grants(&call{a: a, what: "LockContext at last"}, h)
		x.ends(h.Token())
		return h.Unlock(ctx)
	})
}
