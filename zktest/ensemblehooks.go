package zktest

import (
	"context"
	"sync"
	"time"
)

// signals tells those who wait, and those who asked to be told, of elections.
type signals struct {
	mu      sync.Mutex
	n       int
	hooks   []func(leader int, at time.Time)
	changed chan struct{}
}

// tell is called while the ensemble is locked.
func (g *signals) tell(leader int, at time.Time) {
	g.mu.Lock()
	hooks := g.hooks
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
	g.mu.Unlock()
	for _, f := range hooks {
		f(leader, at)
	}
}

func (g *signals) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// count numbers its calls from 0.
func (g *signals) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
	return g.n - 1
}

// OnElected calls f, a hook, when a member becomes the leader.
func (e *Ensemble) OnElected(f func(leader int, at time.Time)) {
	if e.tb != nil {
		e.tb.Helper()
	}
	if e.servers[0].missing("Ensemble.OnElected", f == nil) {
		return
	}
	e.elected.mu.Lock()
	defer e.elected.mu.Unlock()
	e.elected.hooks = append(e.elected.hooks, f)
}

// WaitLeader waits for a leader that can commit, and returns its index.
func (e *Ensemble) WaitLeader(t TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		changed := e.elected.wait()
		if e.zk.Quorate() {
			return e.Leader()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("zktest: no leader within %v", patience)
		}
	}
}

// OnCommit is [Server.OnCommit] of the leader.
func (e *Ensemble) OnCommit(f func(Txn)) {
	if e.tb != nil {
		e.tb.Helper()
	}
	if e.servers[0].missing("Ensemble.OnCommit", f == nil) {
		return
	}
	for _, s := range e.servers {
		s.mu.Lock()
		s.onFirst = append(s.onFirst, f)
		s.mu.Unlock()
	}
}

// OnSessionExpired is [Server.OnSessionExpired].
func (e *Ensemble) OnSessionExpired(f func(id int64, at time.Time)) {
	if e.tb != nil {
		e.tb.Helper()
	}
	if e.servers[0].missing("Ensemble.OnSessionExpired", f == nil) {
		return
	}
	for _, s := range e.servers {
		s.OnSessionExpired(f)
	}
}

// Intercept is [Server.Intercept], with common counts.
func (e *Ensemble) Intercept(r *Rule) *Interception {
	if e.tb != nil {
		e.tb.Helper()
	}
	in := intercept(r, e.servers...)
	e.servers[0].expect(in)
	return in
}

// InterceptFunc is [Server.InterceptFunc].
func (e *Ensemble) InterceptFunc(f func(*Request) Verdict) (remove func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	if e.servers[0].missing("Ensemble.InterceptFunc", f == nil) {
		return func() {}
	}
	var removes []func()
	for _, s := range e.servers {
		removes = append(removes, s.InterceptFunc(f))
	}
	return func() { all(removes) }
}

func all(fs []func()) {
	for _, f := range fs {
		f()
	}
}

// Partition is [Server.Partition].
func (e *Ensemble) Partition(id int64) (heal func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.servers[0].stranger("Partition", id)
	var heals []func()
	for _, s := range e.servers {
		heals = append(heals, s.zk.Block(id, true, true))
	}
	return func() { all(heals) }
}

// SetError is [Server.SetError].
func (e *Ensemble) SetError(code Code, ops ...Op) (clear func()) {
	return setError(code, ops, e.servers...)
}

// Pin makes all members except i refuse the client of a session, until unpin.
func (e *Ensemble) Pin(id int64, i int) (unpin func()) {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.has("Pin", i)
	e.servers[0].stranger("Pin", id)
	var ends []func()
	for k, s := range e.servers {
		if k != i {
			ends = append(ends, s.zk.Exile(id))
		}
	}
	return func() { all(ends) }
}

// Disconnect is [Server.Disconnect].
func (e *Ensemble) Disconnect(id int64) bool {
	if e.tb != nil {
		e.tb.Helper()
	}
	e.servers[0].stranger("Disconnect", id)
	return e.zk.Disconnect(id)
}

// Expire is [Server.Expire]; false without a leader.
func (e *Ensemble) Expire(id int64) bool {
	if e.tb != nil {
		e.tb.Helper()
	}
	return e.servers[0].Expire(id)
}

// Requests is [Server.Requests].
func (e *Ensemble) Requests() int {
	n := 0
	for _, s := range e.servers {
		n += s.Requests()
	}
	return n
}
