package storm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	ms       = time.Millisecond
	lasts    = 20 * time.Second // the faults
	settles  = 15 * time.Second // what is left of them, when they are over: sessions end, others begin
	goesHome = 2 * time.Minute  // whoever has not come back by then waits for ever
)

// recipe is something to be used in a storm.
type recipe struct {
	name string
	join func(w *world) *part
}

// part is a recipe in one world.
type part struct {
	name   string
	actors int
	act    func(a *actor) // one thing of what a goroutine does, again and again

	// release lets those go who wait for others, when the faults are over. It is called again until nobody waits.
	release func(a *actor)
	// use uses it when all is well: for everybody, in any process.
	use func(w *world)

	turns []string // the beginnings of calls of which each has its turn, one after the other

	queues    []string // directories in which nothing is left at the end
	deletable string   // the directory in which nodes may be deleted externally; none if empty
	base      string   // the node that says what all who use it must agree on; none if empty
	believes  bool     // whoever sees no base node after a sync takes it for removed
	single    bool     // no request may be applied twice: no ZooKeeper client repeats one
}

// world is one game.
type world struct {
	t      testing.TB
	seed   uint64
	aloud  bool
	began  time.Time
	srv    *servers
	rnd    *rand.Rand // of the one that makes the world
	meter  *meter
	tracer *tracer
	houses []*house
	admin  *zksync.Session // removes nodes from outside
	secret []zksync.SessionOption
	parts  []*part
	single bool

	over    atomic.Bool // the actors go home
	shut    atomic.Bool // connections are accepted and closed
	spoilt  atomic.Bool // somebody sends without end: there is nothing more to be learned
	running sync.WaitGroup
	healing sync.WaitGroup // faults that are at work
	behind  atomic.Int32   // goroutines of background

	mu    sync.Mutex // innermost, but for the meter's
	count int64
	story []string
	wrong []string
	calls []*call // under way
	books map[string]*ledger
}

func newWorld(t testing.TB, seed uint64, aloud bool) *world {
	w := &world{t: t, seed: seed, aloud: aloud, began: time.Now(), books: map[string]*ledger{}}
	w.rnd = w.stream(0)
	first, k := draws(seed)
	w.srv = newServers(t, kinds[k])
	w.meter, w.tracer = newMeter(w), newTracer(w)
	w.srv.watched(w.meter.judge, w.meter.commit)
	if w.rnd.IntN(4) == 0 { // nobody else may read or write
		w.secret = []zksync.SessionOption{zksync.WithAuth("digest", []byte("storm:secret")), zksync.WithACL(zk.DigestACL(zk.PermAll, "storm", "secret")...)}
	}
	// It is a session, because the client library may hang for ever when it sends credentials again.
	admin, err := zksync.Connect(t.Context(), w.srv.addresses(), append(w.secret, zksync.WithDialer(w.srv.DialContext), zksync.WithTimeout(10*time.Second))...)
	w.must(err == nil, "Connect: %v", err)
	w.admin = admin
	for i := range 2 + w.rnd.IntN(3) {
		w.houses = append(w.houses, newHouse(w, i))
	}
	for _, i := range []int{first, (first + 1 + w.rnd.IntN(len(recipes)-1)) % len(recipes)} {
		p := recipes[i].join(w)
		p.name = recipes[i].name
		w.parts = append(w.parts, p)
		w.single = w.single || p.single
	}
	return w
}

// dial is how a process connects.
func (w *world) dial(h *house) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.meter.dialled(h)
		if w.shut.Load() {
			near, far := net.Pipe()
			return near, far.Close()
		}
		c, err := w.srv.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &door{Conn: c, h: h}, nil
	}
}

// removes deletes a node externally, in the background.
func (w *world) removes(node string) {
	w.background(func() { _ = w.admin.Conn().Delete(node, -1) }) // it may have gone meanwhile
}

// background runs f in a goroutine. It may be called while another goroutine waits in settle, which a sync.WaitGroup forbids.
func (w *world) background(f func()) {
	w.behind.Add(1)
	go func() {
		defer w.behind.Add(-1)
		f()
	}()
}

// settle waits until nothing runs in the background.
func (w *world) settle() {
	for w.behind.Load() > 0 {
		time.Sleep(ms)
	}
}

// stream is a source of luck of its own: what one draws depends on nobody else.
func (w *world) stream(n int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(n))) }

// play is the game.
func (w *world) play() {
	defer w.report()
	actors := w.start()
	done := make(chan struct{})
	go w.watch(done)
	w.blow()
	w.over.Store(true)
	w.healing.Wait()
	w.settle()
	w.meter.calm()
	for _, h := range w.houses {
		h.calm()
	}
	if !w.spoilt.Load() {
		time.Sleep(settles)
	}
	if w.home() {
		w.after(actors)
	}
	close(done)
	w.end()
}

// start has everybody begin.
func (w *world) start() (actors []*actor) {
	for _, p := range w.parts {
		for i := range p.actors {
			a := &actor{w: w, part: p, name: fmt.Sprintf("%s%d", p.name, i), h: w.houses[i%len(w.houses)], rnd: w.stream(100 + len(actors))}
			actors = append(actors, a)
			w.running.Go(a.live)
		}
	}
	return actors
}

// home waits until everybody has finished.
func (w *world) home() bool {
	all := make(chan struct{})
	go func() {
		w.running.Wait()
		close(all)
	}()
	limit := time.Now().Add(goesHome)
	for n := 0; !w.spoilt.Load() && time.Now().Before(limit); n++ {
		for i, p := range w.parts {
			if p.release != nil && w.waits(p) {
				p.release(&actor{w: w, part: p, name: "release " + p.name, h: w.houses[n%len(w.houses)], rnd: w.stream(1000*(n+1) + i)})
			}
		}
		select {
		case <-all:
			return true
		case <-time.After(5 * time.Second):
		}
	}
	if w.spoilt.Load() {
		return false
	}
	w.mu.Lock()
	calls := w.calls
	w.mu.Unlock()
	for _, c := range calls {
		w.must(false, "%s waits for ever, since %v", c, c.began.Sub(w.began))
	}
	w.tell("what there is:\n%s", w.srv.Dump())
	w.must(false, "somebody has not come home")
	return false
}

// waits reports whether somebody of a part is in a call.
func (w *world) waits(p *part) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.a.part == p {
			return true
		}
	}
	return false
}

// after is when nobody wants anything any more.
func (w *world) after(actors []*actor) {
	for _, p := range w.parts {
		if p.use != nil {
			p.use(w)
		}
	}
	time.Sleep(settles)
	w.checkIdle()
	for _, p := range w.parts {
		for _, dir := range p.queues {
			w.must(len(w.srv.Children(dir)) == 0, "left in %s: %v", dir, w.srv.Children(dir))
		}
	}
}

// end closes the sessions. Nothing may be left then; the server looks for the rest.
func (w *world) end() {
	for _, h := range w.houses {
		h.close()
	}
	_ = w.admin.Close()
	w.running.Wait()
	if !w.spoilt.Load() {
		time.Sleep(settles)
		w.checkStrays()
		w.tracer.closed()
	}
}

// stamp orders what happens at one instant.
func (w *world) stamp() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return w.count
}

// tell writes the story.
func (w *world) tell(format string, args ...any) {
	line := fmt.Sprintf("%9.3f ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, line)
}

// must notes what should not be.
func (w *world) must(ok bool, format string, args ...any) {
	if ok {
		return
	}
	line := fmt.Sprintf(format, args...)
	w.tell("WRONG: %s", line)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, line)
}

// shown is how much of the story is printed where not everything is.
const shown = 60

// report fails the test if anything was wrong.
func (w *world) report() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) == 0 && !w.aloud {
		return
	}
	story := w.story
	if !w.aloud {
		for i, line := range story { // until the first that is wrong
			if strings.Contains(line, "WRONG") {
				story = story[max(0, i-shown) : i+1]
				break
			}
		}
	} else {
		for _, q := range w.srv.Log() {
			if q.Op != zktest.Ping {
				story = append(story, fmt.Sprintf("%9.3f %s", q.Time.Sub(w.began).Seconds(), q))
			}
		}
	}
	text := strings.Join(story, "\n")
	if len(w.wrong) == 0 {
		w.t.Logf("%s", text)
		return
	}
	w.t.Errorf("seed %d is wrong, make storm SEED=%[1]d repeats it:\n%[2]s\nwhat was done:\n%[3]s", w.seed,
		strings.Join(w.wrong[:min(len(w.wrong), 10)], "\n"), text)
}
