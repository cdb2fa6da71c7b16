//go:build !race

package share

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// world is three goroutines that use one Cohort on an in-process server, in virtual time. play lets them act in an order
// that it is told, and compares what happens with a plain model: see check and settled.
type world struct {
	scope
	dir    string // for the nodes of waits
	srv    Server
	gate   gate
	conn   atomic.Pointer[gated] // the newest connection, the server's end
	s      *session.Session
	c      *Cohort
	people [3]*person
	other  *person // of another process; nil without one

	came   int // counts calls, to know who came first
	last   node.Token
	heard  int                  // counts the times when answers came
	passed map[int64]*handovers // of each node
	closed bool

	mu      sync.Mutex
	answers atomic.Int64
	told    map[node.Token]int // losses that the tracer was told of
	ended   map[node.Token]int // releases
	log     []string
}

// person is one goroutine.
type person struct {
	name   string
	c      *Cohort
	does   string // "lock", "try", "wait", "unlock"; "" if nothing
	dropIn bool
	cancel context.CancelFunc
	since  int // the call's number

	lease *lease.Lease // of its hold, until its Unlock returns
	got   *lease.Lease // what the call returned
	err   error
	done  atomic.Int64 // when: counts answers

	free bool // the lock was free when it tried
}

// handovers are those of one node.
type handovers struct {
	all, known int // known are those beside another process that was known to wait
	heard      int // of the world, at the grant
}

const (
	lingers = 3 * time.Second
	maxHold = 8 * time.Second
	settles = time.Second // more than any pause between attempts
	passes  = 1
)

var errRefused = errors.New("the model and the lock disagree")

// newWorld makes a world: see scope.
func newWorld(sc scope) (*world, error) {
	w := &world{
		scope: sc, dir: "/waits", srv: Start(), passed: make(map[int64]*handovers),
		told: make(map[node.Token]int), ended: make(map[node.Token]int),
	}
	dial := func(through func(net.Conn) net.Conn) session.SessionOption {
		return session.ForSession(func(s *session.Settings) {
			s.Timeout = 40 * time.Second
			s.Dial = func(context.Context, string, string) (net.Conn, error) {
				a, b := net.Pipe()
				go w.srv.ServeConn(through(b))
				return a, nil
			}
		})
	}
	trace := session.ForSession(func(s *session.Settings) {
		s.Trace = &session.Trace{
			Start: func(ctx context.Context, _ session.Traced) context.Context { return ctx },
			End:   func(context.Context, session.Traced) {},
			Lost: func(_ context.Context, d session.Traced) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.told[d.Token]++
			},
			Release: func(_ context.Context, d session.Traced) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ended[d.Token]++
			},
		}
	})
	bounds := session.ForLock("bounds", func(s *session.Settings) {
		s.Linger, s.MaxHold, s.Handover, s.HandoverIn = lingers, maxHold, passes, time.Hour
	})
	var err error
	w.s, err = session.Connect(context.Background(), "zk", trace, dial(func(b net.Conn) net.Conn {
		conn := &gated{Conn: b, g: &w.gate, over: make(chan struct{})}
		w.conn.Store(conn)
		return conn
	}))
	if err != nil {
		return nil, err
	}
	w.c = NewCohort(session.NewAccess("zksync", w.s, "/lock", []session.Option{bounds}), queue.KindLock)
	for i := range w.people {
		w.people[i] = &person{name: string(rune('a' + i)), c: w.c}
	}
	if sc.refuse {
		w.dir = "/forbidden"
		if _, err := w.s.Conn().Create(w.dir, nil, 0, zk.WorldACL(zk.PermRead)); err != nil {
			return nil, err
		}
	}
	if sc.rival {
		other, err := session.Connect(context.Background(), "zk", dial(func(b net.Conn) net.Conn { return b }))
		if err != nil {
			return nil, err
		}
		c := NewCohort(session.NewAccess[session.Option]("zksync", other, "/lock", nil), queue.KindLock)
		w.other = &person{name: "rival", c: c}
	}
	synctest.Wait()
	w.gate.close()
	return w, nil
}

// still reports whether nobody does or has anything.
func (w *world) still() bool {
	for _, p := range w.people {
		if p.does != "" || p.lease != nil {
			return false
		}
	}
	return w.c.state == idle
}

// owed reports whether the servers have something to say: also that they have not said it on a connection that ended
// meanwhile.
func (w *world) owed() bool { return w.gate.pending() || w.s.State() != session.Connected }

// free reports whether the lock is free for certain.
func (w *world) free() bool {
	return w.other == nil && !w.owed() && (w.still() || w.c.state == lingering && !w.c.grant.ticket.Over())
}

// check is what must be true at any instant.
func (w *world) check() error {
	all := w.all()
	slices.SortFunc(all, func(a, b *person) int { return cmp.Compare(a.done.Load(), b.done.Load()) })
	for _, p := range all {
		if p.done.Load() > 0 && p.does != "" {
			if err := w.answered(p); err != nil {
				return err
			}
		}
	}
	holds, runs := 0, 0
	for _, p := range w.all() {
		switch {
		case p.lease == nil:
		case p == w.other && !w.alive(): // ours has not heard of it yet
		case p.lease.Valid():
			holds++
		case p.dropIn && p.does == "":
			runs++ // lost, but not unlocked
		}
	}
	if w.other != nil && w.other.lease != nil {
		runs = 0 // nobody of another process is kept out
	}
	if holds > 1 || holds+runs > 1 {
		return fmt.Errorf("%w: %d hold, and %d were not unlocked", errRefused, holds, runs)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for token := range w.told {
		if w.told[token]+w.ended[token] > 1 {
			return fmt.Errorf("%w: the end of %v was told more than once", errRefused, token)
		}
	}
	return w.sound()
}

// alive reports whether the servers know our session.
func (w *world) alive() bool {
	_, alive := w.srv.Ephemerals()[w.s.ID()]
	return alive
}

// all are the people, and the rival.
func (w *world) all() []*person {
	if w.other == nil {
		return slices.Clone(w.people[:])
	}
	return append(slices.Clone(w.people[:]), w.other)
}

// sound reports what the data of the state must be.
func (w *world) sound() error {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	has := func(b bool) string { return map[bool]string{true: "x", false: "-"}[b] }
	shape := has(c.grant != nil) + has(c.hold != nil) + has(c.waiters.len > 0)
	want := map[state]string{idle: "---", acquiring: "--?", held: "xx?", lingering: "x--", replacing: "-x?", runsOn: "-x?"}[c.state]
	for i := range want {
		if want[i] != '?' && want[i] != shape[i] && !w.closed {
			return fmt.Errorf("%w: %v with %s", errRefused, c.state, shape)
		}
	}
	return nil
}

// answered is told that p's call has returned.
func (w *world) answered(p *person) error {
	does := p.does
	p.does = ""
	p.cancel()
	w.log = append(w.log, fmt.Sprintf("(%s: %s %v)", p.name, does, p.err))
	switch does {
	case "unlock":
		want := p.lease.Err()
		p.lease = nil
		if want == errs.ErrReleased {
			want = nil
		}
		if !errors.Is(p.err, want) {
			return fmt.Errorf("%w: Unlock says %v, not %v", errRefused, p.err, want)
		}
		return nil
	case "wait":
		p.lease = p.got
		if p.err == nil || p.got == nil {
			return nil
		}
	}
	if p.got == nil {
		switch {
		case errors.Is(p.err, context.Canceled), does == "try" && !p.free && p.err == errs.ErrNotAcquired, w.closed && p.err == errs.ErrClosed:
			return nil
		}
		return fmt.Errorf("%w: %s says %v", errRefused, does, p.err)
	}
	p.lease = p.got
	token := p.got.Token()
	if w.passed[token.Zxid] == nil {
		w.passed[token.Zxid] = &handovers{heard: w.heard}
	}
	// Until ours has heard that its session is over, the rival may have got a greater one.
	stale := w.other != nil && p != w.other && (p.got.Err() != nil || !w.alive())
	if !stale && (does != "wait" || token != w.last) { // a wait may not even begin
		if token.Compare(w.last) <= 0 {
			return fmt.Errorf("%w: %v after %v", errRefused, token, w.last)
		}
		w.last = token
	}
	if first := w.first(); does == "lock" && p != w.other && first != nil && first.since < p.since {
		return fmt.Errorf("%w: %s was granted before %s", errRefused, p.name, first.name)
	}
	return nil
}

// settled is what must be true once nothing is under way: nobody waits for ever, and nothing is left.
func (w *world) settled() error {
	busy, kept, waits := false, false, false
	for _, p := range w.all() {
		switch {
		case p.does == "lock":
			waits = true
		case p.does != "":
			return fmt.Errorf("%w: %s is not answered", errRefused, p.does)
		case p.lease == nil:
		case p.lease.Err() == nil && p.c == w.c:
			busy, kept = true, true
		case p.lease.Err() == nil || p.dropIn:
			busy = true
		}
	}
	if waits && !busy {
		return fmt.Errorf("%w: somebody waits, and the lock is free", errRefused)
	}
	return w.nodes(kept)
}

// nodes are those that this process has in the queue when all is settled.
func (w *world) nodes(kept bool) error {
	if w.other != nil {
		return nil
	}
	n := 0
	for _, paths := range w.srv.Ephemerals() {
		for _, path := range paths {
			if strings.HasPrefix(path, "/lock/") {
				n++
			}
		}
	}
	want := 0
	if kept || w.c.state == lingering {
		want = 1
	}
	if n != want {
		return fmt.Errorf("%w: %d nodes in state %v", errRefused, n, w.c.state)
	}
	return nil
}

// over is what must be true after Close.
func (w *world) over() error {
	if err := w.check(); err != nil {
		return err
	}
	for _, p := range w.people {
		if p.does != "" {
			return fmt.Errorf("%w: %s goes on after Close", errRefused, p.does)
		}
		if p.lease != nil && p.lease.Err() == nil {
			return fmt.Errorf("%w: %s holds after Close", errRefused, p.name)
		}
	}
	if _, err := w.c.Acquire(context.Background(), false); err != errs.ErrClosed {
		return fmt.Errorf("%w: after Close %v", errRefused, err)
	}
	for id := range w.srv.Ephemerals() {
		if w.other == nil || id != w.other.c.side.at.Session.ID() {
			return fmt.Errorf("%w: a session is left", errRefused)
		}
	}
	for token, n := range w.told {
		if n != 1 {
			return fmt.Errorf("%w: the loss of %v was told %d times", errRefused, token, n)
		}
	}
	return nil
}
