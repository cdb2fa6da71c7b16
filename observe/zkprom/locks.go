package zkprom

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-menagerie/menagerie/zksync"
)

// lockKey is what the metrics know of a lock.
type lockKey struct {
	name string
	kind zksync.Kind
}

// lock is what happens now at all locks with one key.
type lock struct {
	lockKey
	waiting, held  int
	oldest, newest *acquisition // of those that hold: a list in the order of their grants
}

// acquisition is the context of an acquisition, and of the lease that it brings. The lease's own context has it as a value,
// so an end finds what it ends without a search, and an acquisition costs one allocation.
type acquisition struct {
	context.Context
	c *Collector

	// All below is guarded by c.mu.
	lock         *lock
	phase        phase
	token        zksync.Token // while holding
	since        time.Time    // of the grant
	older, newer *acquisition // while holding
}

type phase int

const (
	acquiring phase = iota
	holding
	over
)

// ending is how a lease ended.
type ending struct {
	token  zksync.Token
	held   time.Duration
	how    string
	reason string // of a loss
}

// key finds the acquisition of a Collector in a context.
type key struct{ c *Collector }

func (a *acquisition) Value(k any) any {
	if k == (key{a.c}) {
		return a
	}
	return a.Context.Value(k)
}

// acquisitionOf is the acquisition of the context; nil if a tracer around this one has dropped it.
func (c *Collector) acquisitionOf(ctx context.Context) *acquisition {
	a, _ := ctx.Value(key{c}).(*acquisition)
	return a
}

// lockOf finds the lock with this name, kind and path. mu is held.
func (c *Collector) lockOf(name, path string, kind zksync.Kind) *lock {
	k := lockKey{c.names.of(name, path), kind}
	l, ok := c.locks[k]
	if !ok {
		l = &lock{lockKey: k}
		c.locks[k] = l
		begin(c.losses, []string{zksync.ReasonSession, zksync.ReasonRemoved, zksync.ReasonRevoked, zksync.ReasonMaxHold}, k.name, string(kind))
	}
	return l
}

// AcquireStart implements zksync.Tracer.
func (c *Collector) AcquireStart(ctx context.Context, data zksync.AcquireStartData) context.Context {
	a := &acquisition{Context: ctx, c: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.lock = c.lockOf(data.Name, data.Path, data.Kind)
	a.lock.waiting++
	return a
}

// AcquireEnd implements zksync.Tracer.
func (c *Collector) AcquireEnd(ctx context.Context, data zksync.AcquireEndData) {
	a := c.acquisitionOf(ctx)
	c.mu.Lock()
	if a == nil || a.phase != acquiring {
		l := c.lockOf(data.Name, data.Path, data.Kind)
		c.mu.Unlock()
		c.waited(l, data)
		return
	}
	a.phase = over
	a.lock.waiting--
	if data.Err == nil {
		a.hold(data.Token)
	}
	c.mu.Unlock()
	c.waited(a.lock, data)
}

// Release implements zksync.ReleaseTracer.
func (c *Collector) Release(ctx context.Context, data zksync.ReleaseData) {
	c.end(ctx, data.Name, data.Path, data.Kind, ending{token: data.Token, held: data.Held, how: "released"})
}

// Lost implements zksync.LossTracer.
func (c *Collector) Lost(ctx context.Context, data zksync.LossData) {
	how := "lost"
	switch data.Reason {
	case zksync.ReasonRevoked:
		how = "revoked"
	case zksync.ReasonMaxHold:
		how = "max_hold"
	}
	c.end(ctx, data.Name, data.Path, data.Kind, ending{data.Token, data.Held, how, data.Reason})
}

// end ends a lease.
func (c *Collector) end(ctx context.Context, name, path string, kind zksync.Kind, e ending) {
	a := c.acquisitionOf(ctx)
	c.mu.Lock()
	if a != nil && a.phase == holding && a.token == e.token {
		a.drop()
	}
	l := c.lockOf(name, path, kind)
	c.mu.Unlock()
	c.ended(l, e)
}

// hold appends a to those that hold. mu is held.
func (a *acquisition) hold(token zksync.Token) {
	l := a.lock
	a.phase, a.token, a.since = holding, token, time.Now()
	l.held++
	if a.older = l.newest; a.older != nil {
		a.older.newer = a
	} else {
		l.oldest = a
	}
	l.newest = a
}

// drop removes a from those that hold. mu is held.
func (a *acquisition) drop() {
	l := a.lock
	a.phase = over
	l.held--
	if a.older != nil {
		a.older.newer = a.newer
	} else {
		l.oldest = a.newer
	}
	if a.newer != nil {
		a.newer.older = a.older
	} else {
		l.newest = a.older
	}
	a.older, a.newer = nil, nil // a program that keeps this context must not keep those of others in memory
}

// waited counts an acquisition that has ended.
func (c *Collector) waited(l *lock, data zksync.AcquireEndData) {
	c.acquireWait.WithLabelValues(l.name, string(l.kind), outcome(data.Err)).Observe(data.Waited.Seconds())
}

// outcome is how an acquisition ended. The errors of sessions come before those of contexts, because a time limit of
// the network inside them looks like a context's.
func outcome(err error) string {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return "granted"
	case is(zksync.ErrNotAcquired):
		return "not_acquired"
	case is(zksync.ErrLost, zksync.ErrSessionExpired):
		return "lost"
	case is(zksync.ErrClosed, zksync.ErrMisuse, zksync.ErrDeadlock, zksync.ErrUpgrade, zksync.ErrBroken):
		return "error"
	case is(context.Canceled, context.DeadlineExceeded):
		return "canceled"
	}
	return "error"
}

// ended counts a lease that has ended.
func (c *Collector) ended(l *lock, e ending) {
	c.hold.WithLabelValues(l.name, string(l.kind), e.how).Observe(e.held.Seconds())
	if e.how != "released" {
		c.losses.WithLabelValues(l.name, string(l.kind), e.reason).Inc()
	}
}

// locksNow are the gauges of locks.
func (c *Collector) locksNow() (all []prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, l := range c.locks {
		all = append(all, gauge(c.held, float64(l.held), k.name, string(k.kind)), gauge(c.waiting, float64(l.waiting), k.name, string(k.kind)))
		if l.oldest != nil {
			all = append(all, gauge(c.heldSince, float64(l.oldest.since.UnixNano())/1e9, k.name, string(k.kind)))
		}
	}
	return all
}
