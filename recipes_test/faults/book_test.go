package faults_test

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// hold is one grant as the party that got it saw it.
type hold struct {
	party    string
	token    zksync.Token
	node     string
	granted  time.Time // the call returned
	unlocked time.Time // Unlock was called; zero if it was not
	took     time.Duration
	err      error // of Unlock
	order    order
}

// order is when things happened by a counter, which tells apart what happens at one instant.
type order struct{ asked, granted, unlocking, unlocked int64 }

// attempt is one call that was to acquire.
type attempt struct {
	party     string
	asked     time.Time
	answered  time.Time
	limit     time.Time // when its context was to end, or did
	try       bool
	cancelled bool
	err       error
	order     int64
}

// reign is a time during which one node was first in the queue, by the server's own
// history: the server has granted the lock to it.
type reign struct {
	node string // without its directory; empty for an empty queue
	from time.Time
}

// book is what happened, from the parties' side and from the server's.
type book struct {
	dir string

	mu       sync.Mutex
	holds    []*hold
	attempts []*attempt
	lost     map[zksync.Token]time.Time
	lostAt   map[zksync.Token]int64
	count    int64
	queue    []string // by the server's history, in order of creation
	reigns   []reign
}

func newBook(dir string) *book {
	return &book{dir: dir, lost: make(map[zksync.Token]time.Time), lostAt: make(map[zksync.Token]int64)}
}

// commit is told of every transaction, at its instant.
func (b *book) commit(t zktest.Txn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range t.Changes {
		if path.Dir(c.Path) != b.dir {
			continue
		}
		name := path.Base(c.Path)
		switch c.Kind {
		case zktest.Created:
			b.queue = append(b.queue, name)
		case zktest.Deleted:
			b.queue = slices.DeleteFunc(b.queue, func(n string) bool { return n == name })
		}
	}
	head := ""
	if len(b.queue) > 0 {
		head = b.queue[0]
	}
	if len(b.reigns) == 0 || b.reigns[len(b.reigns)-1].node != head {
		b.reigns = append(b.reigns, reign{head, t.Time})
	}
}

// AcquireStart, AcquireEnd and Lost make the book a tracer of every session.
func (b *book) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}

func (b *book) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (b *book) Lost(_ context.Context, d zksync.LossData) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost[d.Token] = time.Now()
	b.lostAt[d.Token] = b.next()
}

// next counts. mu is held.
func (b *book) next() int64 {
	b.count++
	return b.count
}

func (b *book) asking(party string, wait time.Duration, try bool) *attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	return &attempt{party: party, asked: now, limit: now.Add(wait), try: try, order: b.next()}
}

func (b *book) granted(a *attempt, l *zksync.Lease) *hold {
	h := &hold{party: a.party, token: l.Token(), node: path.Base(l.Node()), granted: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	h.order = order{asked: a.order, granted: b.next()}
	b.holds = append(b.holds, h)
	return h
}

func (b *book) unlocking(h *hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.unlocked, h.order.unlocking = time.Now(), b.next()
}

func (b *book) unlockedIn(h *hold, took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.took, h.err, h.order.unlocked = took, err, b.next()
}

func (b *book) answered(a *attempt, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.answered, a.err = time.Now(), err
	b.attempts = append(b.attempts, a)
}

// end is when the party ceased to act as a holder: it called Unlock, or was
// told of the loss. The zero time if neither happened.
func (b *book) end(h *hold) time.Time {
	lost := b.lost[h.token]
	if !lost.IsZero() && (h.unlocked.IsZero() || lost.Before(h.unlocked)) {
		return lost
	}
	return h.unlocked
}

// reign returns when the server granted to the node, and when to the next one.
func (b *book) reign(node string) (from, next time.Time, ok bool) {
	for i, r := range b.reigns {
		if r.node != node {
			continue
		}
		for _, later := range b.reigns[i+1:] {
			if later.node != "" {
				return r.from, later.from, true
			}
		}
		return r.from, time.Time{}, true
	}
	return time.Time{}, time.Time{}, false
}
