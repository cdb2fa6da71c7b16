package faults_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// review looks at everything that must be true after any fault.
func (k *kin) review() {
	k.t.Helper()
	require.Empty(k.t, k.wrongs, "%s", lazily(k.tale))
	k.reviewErrands()
	k.reviewHolds()
	k.reviewGrants()
	k.reviewTokens()
	k.reviewOrphans()
}

// reviewErrands: every call came back in time, with what it is for or an error that says why
// not.
func (k *kin) reviewErrands() {
	t := k.t
	t.Helper()
	refused := k.any(func(f fault) bool { return f.refuses })
	for _, a := range k.book.attempts {
		require.False(t, a.answered.After(a.limit.Add(slack)), "%s came back %v late\n%s", a.party, a.answered.Sub(a.limit), lazily(k.tale))
		switch {
		case a.err == nil, slices.ContainsFunc(k.proper[a], func(p error) bool { return errors.Is(a.err, p) }):
		case a.cancelled:
			require.ErrorIs(t, a.err, context.Canceled, "%s\n%s", a.party, lazily(k.tale))
		case refused && !errors.Is(a.err, context.DeadlineExceeded):
		default:
			require.False(t, a.answered.Before(a.limit), "%s gave up early: %v\n%s", a.party, a.err, lazily(k.tale))
			require.ErrorIs(t, a.err, context.DeadlineExceeded, "%s\n%s", a.party, lazily(k.tale))
			require.NotEqual(t, patient, a.limit.Sub(a.asked), "%s has starved\n%s", a.party, lazily(k.tale))
		}
	}
}

// conflict reports whether two may not hold together, if there are so many permits.
func conflict(a, b *stake, permits int64) bool {
	switch {
	case a.dir != b.dir:
		return false
	case a.weight > 0:
		return a.weight+b.weight > permits
	}
	return !a.reads || !b.reads
}

// reviewHolds: no two parties that conflict believed at the same time that they hold.
func (k *kin) reviewHolds() {
	t := k.t
	t.Helper()
	if k.told() > 0 {
		return // a grant may even be told before a loss; the server's history tells
	}
	for i, s := range k.stakes {
		together := s.weight
		for _, o := range k.stakes[:i] {
			if end := k.end(o); o.dir != s.dir || !end.IsZero() && !end.After(s.granted) {
				continue
			}
			together += o.weight
			require.False(t, s.weight == 0 && conflict(s, o, 0), "%s and %s both held at %v\n%s", s.party, o.party, s.granted.Sub(k.began), lazily(k.tale))
		}
		if s.weight > 0 {
			require.LessOrEqual(t, together, k.lines[s.dir].most(), "too many permits with those of %s at %v\n%s", s.party, s.granted.Sub(k.began), lazily(k.tale))
		}
	}
}

// reviewGrants: nobody held before the server granted, and whoever lost a hold knew
// before the server granted what was his to another.
func (k *kin) reviewGrants() {
	t := k.t
	t.Helper()
	late := k.told()
	for dir, l := range k.lines {
		grants, all := l.replay()
		spots := make(map[string]*spot, len(all))
		for _, s := range all {
			spots[s.node] = s
		}
		for _, s := range k.stakes {
			if s.dir != dir || s.node == "" {
				continue
			}
			require.False(t, k.end(s).IsZero(), "%s never ended\n%s", s.party, lazily(k.tale))
			e := spots[s.node]
			require.NotNil(t, e, "%s holds by a node that never was\n%s", s.party, lazily(k.tale))
			require.False(t, e.from.IsZero() || s.granted.Before(e.from), "%s held by %s before the server granted\n%s", s.party, s.node, lazily(k.tale))
		}
		for _, g := range grants {
			k.reviewGrant(dir, g, late)
		}
	}
}

// reviewGrant: what the server granted at an instant goes together with what was held then.
func (k *kin) reviewGrant(dir string, g grant, late time.Duration) {
	t := k.t
	t.Helper()
	weights := map[string]int64{}
	for _, s := range g.others {
		weights[s.node] = s.weight
	}
	for _, s := range k.stakes {
		end := k.end(s)
		if s.dir != dir || s.node == "" || s.node == g.spot.node || s.granted.After(g.at) || !end.After(g.at.Add(late)) {
			continue
		}
		weights[s.node] = s.weight
		if g.spot.weight == 0 && !s.reads || g.spot.exclusive() {
			require.Failf(t, "told too late", "%s believed to hold by %s until %v; the server granted to %s at %v\n%s",
				s.party, s.node, end.Sub(k.began), g.spot.node, g.at.Sub(k.began), lazily(k.tale))
		}
	}
	if g.spot.weight > 0 {
		var sum int64
		for _, n := range weights {
			sum += n
		}
		require.LessOrEqual(t, sum, g.permits, "permits when %s was granted at %v: %v\n%s", g.spot.node, g.at.Sub(k.began), weights, lazily(k.tale))
	}
}

// reviewTokens: tokens grow from each hold to any later one that conflicts with it. A
// holder that could not be told of its loss may still pass its old one on, for a while.
func (k *kin) reviewTokens() {
	t := k.t
	t.Helper()
	late := k.told()
	for i, s := range k.stakes {
		for _, before := range k.stakes[:i] {
			if s.node == "" || before.node == "" || late > 0 && !s.granted.After(before.granted.Add(late)) {
				continue
			}
			if s.weight > 0 && !conflict(before, s, k.lines[s.dir].most()) || !conflict(before, s, 0) {
				continue
			}
			require.Positive(t, s.token.Compare(before.token), "%s after %s: %v after %v\n%s", s.party, before.party, s.token, before.token, lazily(k.tale))
		}
	}
}

// reviewOrphans: nothing is left in any queue.
func (k *kin) reviewOrphans() {
	t := k.t
	t.Helper()
	grace := soon
	if k.any(func(f fault) bool { return f.lingers }) {
		grace = timeout + soon
	}
	for dir := range k.lines {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		err := k.srv.WaitFor(ctx, func() bool { return len(k.srv.Children(dir)) == 0 })
		cancel()
		require.NoError(t, err, "left behind %v in %s\n%s", k.srv.Children(dir), dir, lazily(k.tale))
	}
}
