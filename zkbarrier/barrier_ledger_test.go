package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// ledger compares what the calls of Await return with what the server did: it follows every transaction, and
// the record of every generation's end.
type ledger struct {
	t   testing.TB
	srv *zktest.Server
	n   int
	b   *Barrier // its settings

	mu      sync.Mutex
	clock   int
	calls   []*entry
	nodes   map[string]*crossing // of parties, by path
	ends    map[int64]*end
	resets  []int // when the barrier was whole again
	unread  []int64
	actions []*actionRun
}

// entry is one call of Await.
type entry struct {
	call       *barrierCall
	attempt    string // read here: the call writes its own again and again
	ctx        context.Context
	began, end int // by the ledger's clock; end is 0 while it runs
	ended      time.Time
	limit      time.Time // when its context ended; zero if it has not
	index      int
	err        error
	epoch      func() int64
	epochs     [2]int64 // numbers its session, when it began and when it ended
}

type crossing struct {
	generation int64
	arrival
	created, deleted int
}

// end is how a generation ended.
type end struct {
	at int
	barrierRecord
}

// actionRun is one run of the action.
type actionRun struct {
	by  *entry
	end int
	err error
}

func newLedger(t testing.TB, srv *zktest.Server, b *Barrier) *ledger {
	l := &ledger{t: t, srv: srv, n: b.parties, b: b, nodes: map[string]*crossing{}, ends: map[int64]*end{}}
	srv.OnCommit(l.commit)
	return l
}

// tick advances the clock. mu is held.
func (l *ledger) tick() int {
	l.clock++
	return l.clock
}

func (l *ledger) commit(txn zktest.Txn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.tick()
	for _, c := range txn.Changes {
		name := path.Base(c.Path)
		kind, of, _ := strings.Cut(name, "-")
		g, err := strconv.ParseInt(of, 10, 64)
		a, isParty := parseArrival(name)
		switch {
		case isParty && c.Kind == zktest.Created:
			_, of, _ := strings.Cut(path.Base(path.Dir(c.Path)), "-")
			g, _ := strconv.ParseInt(of, 10, 64)
			l.nodes[c.Path] = &crossing{generation: g, arrival: a, created: now}
		case isParty && c.Kind == zktest.Deleted:
			l.nodes[c.Path].deleted = now
		case isParty: // written to externally
		case err == nil && kind == "ended" && c.Kind == zktest.Created:
			l.ends[g] = &end{at: now}
			l.unread = append(l.unread, g)
		case err == nil && kind == "open" && c.Kind == zktest.Created:
			l.resets = append(l.resets, now)
		}
	}
}

// start calls Await, in a goroutine.
func (l *ledger) start(ctx context.Context, b *Barrier) *entry {
	call := newBarrierCall(b)
	c := &entry{call: call, attempt: call.attempt, epoch: func() int64 { return l.epochs(b) }}
	c.epochs[0] = c.epoch()
	c.ctx = context.WithValue(ctx, entryKey{}, c)
	l.mu.Lock()
	c.began = l.tick()
	l.calls = append(l.calls, c)
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		c.limit = time.Now()
	})
	go func() {
		index, err := c.call.await(c.ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		c.index, c.err, c.end, c.ended = index, err, l.tick(), time.Now()
		c.epochs[1] = c.epoch()
	}()
	return c
}

type entryKey struct{}

// action is one for WithAction that takes d.
func (l *ledger) action(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		run := &actionRun{by: ctx.Value(entryKey{}).(*entry)}
		l.mu.Lock()
		l.actions = append(l.actions, run)
		l.mu.Unlock()
		select {
		case <-time.After(d):
		case <-ctx.Done():
			run.err = context.Cause(ctx)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		run.end = l.tick()
		return run.err
	}
}

// check looks at everything that has happened so far.
func (l *ledger) check(name string) {
	l.t.Helper()
	l.read(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	places := map[string]int{} // of all who passed
	for g, e := range l.ends {
		for i, a := range e.Passed {
			require.NotContains(l.t, places, a, "%s: counted in two generations", name)
			places[a] = i
		}
		if !e.Broken {
			l.checkPassed(name, g, e)
		}
	}
	for _, c := range l.calls {
		l.checkCall(name, c, places)
	}
}

// read reads how generations ended.
func (l *ledger) read(name string) {
	l.t.Helper()
	l.mu.Lock()
	unread := l.unread
	l.unread = nil
	l.mu.Unlock()
	for _, g := range unread {
		n, ok := l.srv.Node(fmt.Sprintf("%s/ended-%d", weather.TestPath, g))
		require.True(l.t, ok, "%s: the end of generation %d", name, g)
		l.mu.Lock()
		require.NoError(l.t, json.Unmarshal(n.Data, &l.ends[g].barrierRecord), name)
		l.mu.Unlock()
	}
}

// checkPassed: who left were as many as the barrier has parties, the first who had come, and all
// were there. mu is held.
func (l *ledger) checkPassed(name string, g int64, e *end) {
	l.t.Helper()
	require.Len(l.t, e.Passed, l.n, name)
	var came []*crossing
	for _, n := range l.nodes {
		if n.generation == g {
			came = append(came, n)
		}
	}
	slices.SortFunc(came, func(a, b *crossing) int { return a.seq - b.seq })
	var first []string
	there := map[string]bool{}
	for _, n := range came {
		if n.deleted == e.at {
			there[n.attempt] = true
		}
		if !slices.Contains(first, n.attempt) {
			first = append(first, n.attempt)
		}
	}
	require.Equal(l.t, first[:min(len(first), l.n)], e.Passed, "%s: generation %d: the first to come", name, g)
	for _, a := range e.Passed {
		require.True(l.t, there[a], "%s: generation %d: %s was not there any more", name, g, a)
	}
	if l.b.action == nil {
		return
	}
	runs := 0
	for _, r := range l.actions {
		if slices.Contains(e.Passed, r.by.attempt) && r.end > 0 && r.end <= e.at && r.err == nil {
			runs++
		}
	}
	require.Equal(l.t, 1, runs, "%s: generation %d: the action", name, g)
}

// checkCall: a call that was counted returns its index, or gave up; a call that returns an index was counted; one that
// was told that the barrier is broken was there when it was. mu is held.
func (l *ledger) checkCall(name string, c *entry, places map[string]int) {
	l.t.Helper()
	place, counted := places[c.attempt]
	if c.end == 0 {
		require.True(l.t, c.limit.IsZero() || !time.Now().After(c.limit.Add(100*time.Millisecond)), "%s: outstays its context", name)
		return
	}
	gaveUp := !c.limit.IsZero() && errors.Is(c.err, context.Cause(c.ctx))
	if !c.limit.IsZero() {
		require.False(l.t, c.ended.After(c.limit.Add(100*time.Millisecond)), "%s: came back late", name)
	}
	switch {
	case c.err == nil:
		require.True(l.t, counted, "%s: left without having been counted", name)
		require.Equal(l.t, l.n-1-place, c.index, "%s: index", name)
	case gaveUp, errors.Is(c.err, zksync.ErrSessionExpired):
	case errors.Is(c.err, zksync.ErrBroken):
		require.False(l.t, counted, "%s: a complete generation was seen as broken", name)
		require.True(l.t, c.epochs[0] != c.epochs[1] || l.wasBroken(c.began, c.end), "%s: %v, though nobody broke it", name, c.err)
	default:
		require.Fail(l.t, "an error out of place", "%s: %v", name, c.err)
	}
}

// wasBroken reports whether the barrier was broken at some time. mu is held.
func (l *ledger) wasBroken(from, to int) bool {
	for _, e := range l.ends {
		whole := l.clock + 1
		for _, r := range l.resets {
			if r >= e.at {
				whole = min(whole, r)
			}
		}
		if e.Broken && e.at <= to && whole >= from {
			return true
		}
	}
	return false
}

// pending is how many calls have not returned.
func (l *ledger) pending() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.end == 0 {
			n++
		}
	}
	return n
}

// epochs counts the sessions of a barrier's process.
func (l *ledger) epochs(b *Barrier) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e, err := b.at.Client().Epoch(ctx); err == nil {
		return e.Number()
	}
	return -1 // none at the moment
}

// result is that of a call, if it has returned.
func (l *ledger) result(c *entry) (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.end > 0, c.err
}

// story is what happened, for failures.
func (l *ledger) story() string {
	var s strings.Builder
	for _, q := range l.srv.Log() {
		if q.Op == zktest.Ping {
			continue
		}
		fmt.Fprintln(&s, q)
	}
	s.WriteString(l.srv.Tree())
	return s.String()
}
