package faults_test

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// check looks at everything that must be true after any fault. It is called when every
// party has come back and everything is healed.
func (w *world) check() {
	t := w.t
	t.Helper()
	synctest.Wait() // so that nobody writes into the book any more
	w.checkDeadlines()
	w.checkExclusion()
	w.checkTokens()
	w.checkOrphans()
	w.checkNextLock()
}

// struck returns the faults of the plans that did strike or could have.
func (w *world) any(is func(f fault) bool) bool {
	return slices.ContainsFunc(w.plans, func(p plan) bool { return is(p.fault) })
}

// checkDeadlines: every call came back in time, with a lease or an error that says why not.
func (w *world) checkDeadlines() {
	t := w.t
	t.Helper()
	refused := w.any(func(f fault) bool { return f.refuses })
	for _, a := range w.book.attempts {
		require.False(t, a.answered.After(a.limit.Add(slack)), "%s came back %v late\n%s", a.party, a.answered.Sub(a.limit), lazily(w.story))
		switch {
		case a.err == nil:
		case a.try && errors.Is(a.err, zksync.ErrNotAcquired):
		case a.cancelled:
			require.ErrorIs(t, a.err, context.Canceled, "%s\n%s", a.party, lazily(w.story))
		case refused && !errors.Is(a.err, context.DeadlineExceeded):
		default:
			require.False(t, a.answered.Before(a.limit), "%s gave up early: %v\n%s", a.party, a.err, lazily(w.story))
			require.ErrorIs(t, a.err, context.DeadlineExceeded, "%s\n%s", a.party, lazily(w.story))
			require.NotEqual(t, patient, a.limit.Sub(a.asked), "%s has starved\n%s", a.party, lazily(w.story))
		}
	}
	for _, h := range w.book.holds {
		require.LessOrEqual(t, h.took, time.Second+slack, "the Unlock of %s\n%s", h.party, lazily(w.story))
		if h.err != nil {
			require.ErrorIs(t, h.err, zksync.ErrLost, "%s\n%s", h.party, lazily(w.story))
		}
	}
}

// told is how late a holder may learn of its loss. None at all, unless the server ended a
// session that it had just heard of, which nobody can foresee.
func (w *world) told() time.Duration {
	switch {
	case w.any(func(f fault) bool { return f.silent }):
		return timeout
	case w.any(func(f fault) bool { return f.forced }):
		return slack
	}
	return w.late
}

// checkExclusion: no two parties believed at the same time that they hold; whoever lost the
// lock knew before the server granted it to another; and nobody held before the
// server granted.
func (w *world) checkExclusion() {
	t := w.t
	t.Helper()
	late := w.told()
	holds := slices.Clone(w.book.holds)
	slices.SortStableFunc(holds, func(a, b *hold) int { return a.granted.Compare(b.granted) })
	for i, h := range holds {
		end := w.book.end(h)
		require.False(t, end.IsZero(), "%s never ended\n%s", h.party, lazily(w.story))
		// A session that was ended behind its client's back can even be granted to, by an event that was on its
		// way, after another one: then only the server's history below tells who came first.
		if i+1 < len(holds) && late == 0 {
			require.False(t, end.After(holds[i+1].granted), "%s and %s both held\n%s", h.party, holds[i+1].party, lazily(w.story))
		}
		from, next, ok := w.book.reign(h.node)
		require.True(t, ok, "%s holds by a node that never was first\n%s", h.party, lazily(w.story))
		require.False(t, h.granted.Before(from), "%s held before its node was first\n%s", h.party, lazily(w.story))
		if !next.IsZero() {
			require.False(t, end.After(next.Add(late)), "%s was told %v after the server granted to another\n%s", h.party, end.Sub(next), lazily(w.story))
		}
	}
}

// checkTokens: tokens grow in the order of the grants. A holder that could not be told of its loss may
// still pass its old token on to another goroutine, but only as long as that.
func (w *world) checkTokens() {
	t := w.t
	t.Helper()
	late := w.told()
	for i, h := range w.book.holds {
		for _, before := range w.book.holds[:i] {
			require.NotEqual(t, before.token, h.token, "%s and %s\n%s", before.party, h.party, lazily(w.story))
			if late == 0 || h.granted.After(before.granted.Add(late)) {
				require.Positive(t, h.token.Compare(before.token), "%s after %s\n%s", h.party, before.party, lazily(w.story))
			}
		}
	}
}

// checkOrphans: nothing is left in the queue. Nodes of a session that lives go as soon as the
// connection allows; a session that was given up may have to time out first.
func (w *world) checkOrphans() {
	t := w.t
	t.Helper()
	grace := soon
	if w.any(func(f fault) bool { return f.lingers }) {
		grace = timeout + soon
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := w.srv.WaitFor(ctx, func() bool { return len(w.srv.Children(lockDir)) == 0 })
	require.NoError(t, err, "left behind %v\n%s", w.srv.Children(lockDir), lazily(w.story))
}

// checkNextLock: a client that comes now gets the lock at once, in no more than the requests that it takes.
func (w *world) checkNextLock() {
	t := w.t
	t.Helper()
	s := w.srv.Session(t)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	before, began := w.srv.Requests(), time.Now()
	l, err := zksync.NewMutex(s, lockDir).LockContext(ctx)
	require.NoError(t, err, "the next lock\n%s", lazily(w.story))
	require.Zero(t, time.Since(began), "the next lock took its time\n%s", lazily(w.story))
	require.LessOrEqual(t, w.srv.Requests()-before, 5, "the next lock\n%s", lazily(w.story))
	for _, h := range w.book.holds {
		require.Positive(t, l.Token().Compare(h.token), "the next lock after %s\n%s", h.party, lazily(w.story))
	}
	require.NoError(t, l.Unlock())
	require.NoError(t, s.Close())
}

// asked returns what each client asked for.
func (w *world) asked() [][]request {
	var out [][]request
	for _, c := range w.clients {
		c.mu.Lock()
		out = append(out, slices.Clone(c.requests))
		c.mu.Unlock()
	}
	return out
}
