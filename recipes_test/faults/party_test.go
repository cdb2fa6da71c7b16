package faults_test

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// cancelAll ends the contexts of everything that the client waits for.
func (c *client) cancelAll() { c.cancel("") }

// cancel ends the contexts of what one party of the client waits for.
func (c *client) cancel(party string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a, cancel := range c.cancels {
		if party != "" && a.party != party || !time.Now().Before(a.limit) {
			continue // its time is over already
		}
		a.cancelled = true
		a.limit = time.Now()
		cancel()
		delete(c.cancels, a)
	}
}

// party is one goroutine that takes the lock.
type party struct {
	name   string
	c      *client
	m      *zksync.Mutex
	start  time.Duration
	hold   time.Duration
	wait   time.Duration // until it gives up; 0 for patient
	rounds int           // 0 for one
	try    bool
	watch  bool // asks for Done, so that the own node is watched

	release <-chan struct{}     // ends the hold; instead of hold
	granted func(*zksync.Lease) // may be nil
}

// start starts a party.
func (w *world) start(p party) {
	w.running.Go(func() {
		time.Sleep(p.start)
		for range max(p.rounds, 1) {
			w.once(p)
		}
	})
}

// once acquires, holds and releases.
func (w *world) once(p party) {
	l, h := w.acquire(p)
	if l == nil {
		return
	}
	if p.granted != nil {
		p.granted(l)
	}
	switch {
	case p.release != nil:
		select {
		case <-l.Done():
		case <-p.release:
		}
	case p.watch:
		select {
		case <-l.Done():
		case <-time.After(p.hold):
		}
	default:
		time.Sleep(p.hold)
	}
	w.book.unlocking(h)
	called := time.Now()
	err := l.Unlock()
	w.book.unlockedIn(h, time.Since(called), err)
}

// acquire asks for the lock and enters into the book what comes of it.
func (w *world) acquire(p party) (*zksync.Lease, *hold) {
	wait := p.wait
	if wait == 0 {
		wait = patient
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	a := w.book.asking(p.name, wait, p.try)
	p.c.mu.Lock()
	p.c.cancels[a] = cancel
	p.c.mu.Unlock()
	get := p.m.LockContext
	if p.try {
		get = p.m.TryLockContext
	}
	l, err := get(ctx)
	p.c.mu.Lock()
	delete(p.c.cancels, a)
	p.c.mu.Unlock()
	w.book.answered(a, err)
	if err != nil {
		return nil, nil
	}
	return l, w.book.granted(a, l)
}
