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
	"github.com/go-menagerie/menagerie/internal/zkserver"
)

// world is three goroutines that use one Cohort on an in-process server, in virtual time. play lets them act in an order
// that it is told, and compares what happens with a plain model: see check and settled.
type world struct {
	scope
	dir    string // for the nodes of waits
	srv    *zkserver.Server
	gate   gate
	conn   atomic.Pointer[gated] // the newest connection, the server's end
	s      *session.Session
	c      *Cohort
	people [3]*person
	other  *person // of another process; nil without one

	came   int // counts calls, to know who came first
	last   node.Token
	passed map[int64]int // hand-overs of each node
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

const (
	lingers = 3 * time.Second
	maxHold = 8 * time.Second
	settles = time.Second // more than any pause between attempts
	passes  = 1
)

var errRefused = errors.New("the model and the lock disagree")

// gate keeps back what the server says.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while it is open
	held int           // connections with something to say
}

func (g *gate) wait(over <-chan struct{}) {
	for {
		g.mu.Lock()
		shut := g.shut
		if shut == nil {
			g.mu.Unlock()
			return
		}
		g.held++
		g.mu.Unlock()
		select {
		case <-shut:
		case <-over:
		}
		g.mu.Lock()
		g.held--
		g.mu.Unlock()
		select {
		case <-over:
			return
		default:
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pending() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}

// gated is the server's end of a connection.
type gated struct {
	net.Conn
	g    *gate
	over chan struct{}
	once sync.Once
}

func (c *gated) Write(b []byte) (int, error) {
	c.g.wait(c.over)
	return c.Conn.Write(b)
}

func (c *gated) Close() error {
	err := c.Conn.Close() // first, or what waits at the gate might yet be heard
	c.once.Do(func() { close(c.over) })
	return err
}

// newWorld makes a world: see scope.
func newWorld(sc scope) (*world, error) {
	w := &world{
		scope: sc, dir: "/waits", srv: zkserver.New(zkserver.Config{}), passed: make(map[int64]int),
		told: make(map[node.Token]int), ended: make(map[node.Token]int),
	}
	dial := func(through func(net.Conn) net.Conn) session.Option {
		return session.ForSession("a pipe", func(s *session.Settings) {
			s.Timeout = 40 * time.Second
			s.Dial = func(context.Context, string, string) (net.Conn, error) {
				a, b := net.Pipe()
				go w.srv.ServeConn(through(b))
				return a, nil
			}
		})
	}
	trace := session.ForSession("a trace", func(s *session.Settings) {
		s.Trace = &session.Trace{
			Start: func(ctx context.Context, _ string, _ queue.Kind) context.Context { return ctx },
			End:   func(context.Context, string, queue.Kind, error, session.Granted, time.Duration) {},
			Lost: func(_ context.Context, _ string, _ queue.Kind, g session.Granted, _ time.Duration, _ error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.told[g.Token]++
			},
			Release: func(_ context.Context, _ string, _ queue.Kind, g session.Granted, _ time.Duration) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ended[g.Token]++
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
	w.c = NewCohort(session.NewAccess(w.s, "/lock", []session.Option{bounds}), queue.KindLock)
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
		c := NewCohort(session.NewAccess[session.Option](other, "/lock", nil), queue.KindLock)
		w.other = &person{name: "rival", c: c}
	}
	synctest.Wait()
	w.gate.close()
	return w, nil
}

// start has p make a call in a goroutine of its own.
func (w *world) start(p *person, does string, call func(context.Context) (*lease.Lease, error)) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	w.came++
	p.does, p.since, p.got, p.err = does, w.came, nil, nil
	p.done.Store(0)
	go func() {
		p.got, p.err = call(ctx)
		p.done.Store(w.answers.Add(1))
	}()
}

// event is something that may happen now.
type event struct {
	name string
	do   func()
}

// events are all that may happen now. Of those who do nothing one stands for all.
func (w *world) events() (all []event) {
	add := func(name string, do func()) { all = append(all, event{name, do}) }
	fresh := true
	for _, p := range w.people {
		switch {
		case p.does == "" && p.lease == nil && fresh:
			fresh = false
			for _, dropIn := range []bool{false, true} {
				add(fmt.Sprint(p.name, " locks ", dropIn), func() { w.lock(p, dropIn) })
			}
			add(p.name+" tries", func() {
				p.free, p.dropIn = w.free(), false
				w.start(p, "try", func(ctx context.Context) (*lease.Lease, error) { return p.c.Try(ctx, false) })
			})
		case p.does == "" && p.lease != nil:
			add(p.name+" unlocks", func() { w.unlock(p) })
			if !p.dropIn {
				add(p.name+" waits inside", func() { w.wait(p) })
			}
		case p.does != "" && p.does != "unlock":
			add(p.name+" gives up", func() {
				p.cancel()
				time.Sleep(node.Grace)
			})
		}
	}
	if len(w.srv.Sessions()) > 0 && !w.still() {
		add("session lost", func() {
			// What is on its way is lost with it: whether that or the loss was heard first would be chance.
			conn := w.conn.Load()
			w.srv.Expire(w.s.ID())
			_ = conn.Close()
		})
	}
	switch l := w.c.Current(); {
	case w.c.state == lingering:
		add("lingered", func() { time.Sleep(lingers) })
	case l != nil && l.Err() == nil:
		add("held too long", func() { time.Sleep(time.Until(l.Since().Add(maxHold))) })
	}
	if r := w.other; r != nil && r.does == "" && r.lease == nil {
		add("rival locks", func() { w.lock(r, false) })
	} else if r != nil && r.does == "" {
		add("rival unlocks", func() { w.unlock(r) })
	}
	if !w.stays {
		add("close", w.close)
	}
	return all
}

func (w *world) lock(p *person, dropIn bool) {
	p.dropIn = dropIn
	w.start(p, "lock", func(ctx context.Context) (*lease.Lease, error) { return p.c.Acquire(ctx, dropIn) })
}

func (w *world) unlock(p *person) {
	w.start(p, "unlock", func(context.Context) (*lease.Lease, error) { return nil, p.lease.Unlock() })
}

// wait is a release for a wait, which never locks again.
func (w *world) wait(p *person) {
	at := fmt.Sprintf("%s/%s-%d", w.dir, p.name, w.came)
	r := queue.Replacement{Dir: w.dir, Node: at, ACL: zk.WorldACL(zk.PermAll)}
	w.start(p, "wait", func(ctx context.Context) (*lease.Lease, error) {
		_, kept, err := p.c.Monitor().Suspend(ctx, p.lease, r)
		return kept, err
	})
}

func (w *world) close() {
	w.closed = true
	done := make(chan struct{})
	go func() {
		_ = w.s.Close()
		close(done)
	}()
	time.Sleep(settles)
	w.gate.open()
	<-done
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

// scope says what is played.
type scope struct {
	begin  []string // events, by their names, that come first
	depth  int      // how many come then
	refuse bool     // the servers refuse every wait inside the lock
	rival  bool     // another process locks, too
	stays  bool     // the session is closed at the end only
}

// play lets events happen as choose says, which picks one of so many possibilities, and then the rest: everybody who can
// unlocks, until all is over.
func play(sc scope, choose func(of int) int) (log []string, err error) {
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	defer w.srv.Close()
	defer func() {
		log = w.log
		if !w.closed {
			w.close()
		}
		if w.other != nil {
			_ = w.other.c.at.Session.Close()
		}
	}()
	for _, name := range sc.begin {
		if err := w.named(name); err != nil {
			return nil, err
		}
	}
	for i := 0; i < sc.depth && !w.closed; i++ {
		all := w.events()
		e := all[choose(len(all))]
		w.log = append(w.log, e.name)
		if err := w.act(e); err != nil {
			return nil, err
		}
		if w.owed() && choose(2) == 0 {
			if err := w.settle(); err != nil {
				return nil, err
			}
		}
	}
	return nil, w.rest()
}

// named has the event of that name happen.
func (w *world) named(name string) error {
	if name == "answers" {
		return w.settle()
	}
	for _, e := range w.events() {
		if e.name == name {
			return w.act(e)
		}
	}
	return fmt.Errorf("%w: %s cannot be", errRefused, name)
}

// act has e happen.
func (w *world) act(e event) error {
	before := w.c.Current()
	waiting := w.first()
	e.do()
	synctest.Wait()
	if strings.HasPrefix(e.name, "held too long") && before.Err() != errs.ErrMaxHold && before.Err() != errs.ErrLost {
		return fmt.Errorf("%w: held too long, and %v", errRefused, before.Err())
	}
	if err := w.check(); err != nil {
		return err
	}
	// A hand-over is at once.
	after := w.c.Current()
	if strings.HasSuffix(e.name, " unlocks") && before != nil && waiting != nil && after != nil && before != after {
		zxid := before.Token().Zxid
		if after.Token().Zxid == zxid {
			w.passed[zxid]++
		}
		if w.passed[zxid] > passes {
			return fmt.Errorf("%w: handed over %d times", errRefused, w.passed[zxid])
		}
	}
	return nil
}

// first is the one who waits, and came first.
func (w *world) first() (first *person) {
	for _, p := range w.people {
		if p.does == "lock" && p.done.Load() == 0 && (first == nil || p.since < first.since) {
			first = p
		}
	}
	return first
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
	return slices.ContainsFunc(w.srv.Sessions(), func(s zkserver.SessionInfo) bool { return s.ID == w.s.ID() })
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
	shape := has(c.grant != nil) + has(c.hold != nil) + has(len(c.waiters) > 0)
	want := map[state]string{idle: "---", acquiring: "--?", held: "xx?", lingering: "x--", replacing: "-x?", lost: "-x?"}[c.state]
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

// settle lets all answers arrive. A connection that had none may have to be made again, and a removal tried again; that takes
// some time.
func (w *world) settle() (err error) {
	w.log = append(w.log, "answers")
	w.gate.open()
	defer w.gate.close()
	for range 5 {
		time.Sleep(settles)
		synctest.Wait()
		if err := w.check(); err != nil {
			return err
		}
		if err = w.settled(); err == nil {
			return nil
		}
	}
	return err
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
	for _, s := range w.srv.Sessions() {
		for _, path := range s.Ephemerals {
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

// rest is the end: all unlock who hold, until nobody does anything, and nothing is left.
func (w *world) rest() error {
	for range 2 * len(w.people) {
		if w.closed {
			break
		}
		if err := w.settle(); err != nil {
			return err
		}
		idle := true
		for _, p := range w.all() {
			if p.lease != nil && p.does == "" {
				w.log = append(w.log, p.name+" unlocks")
				w.unlock(p)
				idle = false
			}
		}
		synctest.Wait()
		if err := w.check(); err != nil {
			return err
		}
		if idle {
			break
		}
	}
	if !w.closed {
		time.Sleep(lingers)
		if err := w.settle(); err != nil {
			return err
		}
		if !w.still() {
			return fmt.Errorf("%w: something remains: %v", errRefused, w.c.state)
		}
		w.close()
	}
	synctest.Wait()
	return w.over()
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
	for _, s := range w.srv.Sessions() {
		if w.other == nil || s.ID != w.other.c.at.Session.ID() {
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
