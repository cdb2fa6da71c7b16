package zkgroup

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// places are those of WithConcurrency: each item that runs has one. Items get them in the order in which they asked, so none starves.
type places struct {
	mu   sync.Mutex
	free int
	line []chan struct{} // of those who wait; closed when they have a place
}

// ask asks for a place. The channel is closed when there is one.
func (p *places) ask() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := make(chan struct{})
	if p.line = append(p.line, place); p.free > 0 {
		p.free--
		p.next()
	}
	return place
}

// try takes a place if one is free.
func (p *places) try() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return false
	}
	p.free--
	return true
}

// leave gives a place back.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next()
}

// next gives a place to the first in the line. mu is held.
func (p *places) next() {
	if len(p.line) == 0 {
		p.free++
		return
	}
	close(p.line[0])
	p.line = p.line[1:]
}

// quit is for what ask has returned, if it is not used.
func (p *places) quit(place chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.line, place); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
		return
	}
	p.next()
}

// lease returns the lease of an item together with a place, for which it has asked already if place is not nil. It waits for a place without
// the lease, so that no item that waits is kept from another member. If the member before does not give the item up for a quarter of
// the session timeout, it waits on without the place, so that other items run. If no place is free at the grant, it returns no lease.
func (a *assignment) lease(ctx context.Context, it *item, place chan struct{}) (*zksync.Lease, error) {
	if a.places == nil {
		return it.lock.LockContext(ctx)
	}
	if place == nil {
		place = a.places.ask()
	}
	select {
	case <-place:
	case <-ctx.Done():
		a.places.quit(place)
		return nil, ctx.Err()
	}
	has := time.AfterFunc(a.g.at.Session.Timeout()/4, a.places.leave)
	l, err := it.lock.LockContext(ctx)
	switch still := has.Stop(); {
	case err != nil && still:
		a.places.leave()
		return nil, err
	case err != nil || still || a.places.try():
		return l, err
	}
	_ = l.Unlock()
	return nil, nil
}
