package share

import (
	"context"
	"math"
	"time"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Hand-overs inside this process have a bound, because other contenders must not wait for ever. It does not count while there
// certainly are none: from an answer that shows none until the child watch that came with it fires. At the bound a ticket
// whose entry was alone when it was made asks for that, with one request, while nothing is held. Any other ticket is given up
// without the question, because another contender probably waits.
//
// When the watch fires the bound counts from that moment, until the ticket is given up. A late event delays other contenders by as
// much. It cannot be late for ever: the wire has it before the answers to later syncs, and without those the lease ends. If it
// is lost, the answer to the next question shows them: an answer counts for a session timeout, like the quiet of a waiter.

// company is what is known of contenders other than this object.
type company uint8

const (
	unsure company = iota
	alone          // there are none, and a watch says when one comes
	others         // there are some, or were, or no watch would say so
)

// mostPasses bounds passes. It leaves room in a token's Seq for changes that are not
// hand-overs: a downgrade, or a grant in the place of one that could not be given up.
const mostPasses = math.MaxUint32 - 1<<16

// unsettled reports whether nobody may hold g's ticket again. There are four causes. A
// guarded transaction may be under way, or its outcome unknown: if it is applied after
// the hold has ended, it must fail because the node is gone, and not succeed during a
// successor's hold of the same node. Or there are no tokens left for the ticket. Or somebody has
// asked its holder to give the lock up: who holds after it was not asked. Or an entry says that its owner holds the ticket.
func (g *grant) unsettled() bool {
	return g.ticket.Unanswered.Load() > 0 || g.passes >= mostPasses || g.ticket.Asked.Came() || g.ticket.Named.Load()
}

// mayPass reports whether the ticket may go to the next waiter of this process. mu is held.
func (g *grant) mayPass(now time.Time) bool {
	return (g.known(now) == alone || g.within(now)) && g.passable(now)
}

// known is the company as far as the newest answer still counts. mu is held.
func (g *grant) known(now time.Time) company {
	if g.company == alone && now.Sub(g.asked) >= g.ticket.Epoch.Timeout() {
		return unsure
	}
	return g.company
}

// within reports whether the bound is not reached. mu is held.
func (g *grant) within(now time.Time) bool {
	settings := &g.c.side.at.Settings
	return uint64(g.passes-g.first) < uint64(settings.Handover) && now.Sub(g.since) < settings.HandoverIn
}

// passable reports whether the ticket may be handed over, but for the bound. mu is held.
func (g *grant) passable(now time.Time) bool {
	return g.c.side.at.Settings.Handover > 0 && !g.unsettled() && g.ticket.Epoch.ValidAt(now) && !g.ticket.Over()
}

// mayStay reports whether further hand-overs may be allowed if the servers are asked for other contenders. mu is held.
func (g *grant) mayStay(now time.Time) bool {
	return g.known(now) == unsure && g.ticket.Sole() && g.passable(now)
}

// renew returns the ticket if it may be handed over beyond the bound, or else another one, in place of this one.
func (g *grant) renew(ctx context.Context) (*queue.Ticket, error) {
	if g.stays(ctx) {
		return g.ticket, nil
	}
	g.ticket.Retire()
	return g.c.side.q.ObtainFrom(ctx, g.c.ticketLost, g.ticket)
}

// stays asks whether others queue, unless that is known, and reports whether the ticket may be handed over beyond the bound.
func (g *grant) stays(ctx context.Context) bool {
	g.c.mu.Lock()
	now := time.Now()
	asks := g.mayStay(now)
	if asks {
		g.asked = now
	}
	g.c.mu.Unlock()
	if asks {
		g.look(ctx)
	}
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	return g.mayPass(time.Now())
}

// look finds out whether other contenders queue, and watches for them. This is the only child watch
// that the package sets on a directory that others share. Only a ticket that lingers, or that was handed over up to the
// bound, has it: it would wake others at every change of the directory. The removal of the ticket's own node ends it.
func (g *grant) look(ctx context.Context) {
	c := g.c
	w, listing, err := g.ticket.Epoch.WatchChildren(ctx, c.side.q.Dir, func(zkconn.Event) {
		// This runs in the goroutine that reads the connection. It must
		// not wait for the requests that giving the ticket up may need.
		c.side.at.Session.Spawn(g.joined)
	})
	switch {
	case err != nil && c.side.at.Session.Closing():
		// Close gives the ticket up: it waits until the mark of the hold is gone, too
	case err != nil, !g.ticket.AloneIn(listing.Names): // without a watch this process would not learn of others, so they are assumed
		g.joined()
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if g.watch != nil {
			g.watch.Stop() // w gets the same events from now on
		}
		if g.watch = w; g.company == unsure { // else the event of the watch was quicker
			g.company = alone
		}
	}
}

// joined is called when others are known to queue, or may queue unseen: from now on the bound counts.
func (g *grant) joined() {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.company == alone {
		g.first, g.since = g.passes, time.Now()
	}
	g.company = others
	g.endLingering()
}
