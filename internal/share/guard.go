package share

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
)

// guard is the context of one acquisition with deadlock detection. It knows what the caller holds. If that is something, the
// guard looks for a cycle through the wait from time to time, and ends the wait if there is one.
type guard struct {
	context.Context                 // of the acquisition
	tr              *lease.Tracing  // nil without a tracer
	asked           context.Context // that of the caller
	s               *side
	said            queue.Waiter
	held            []*lease.Lease
	began           time.Time

	mu     sync.Mutex
	stands func() (entry string, own bool) // see stand; nil before it waits
	timer  *time.Timer                     // nil unless it looks
	cancel context.CancelFunc
	pause  time.Duration
	found  error // the deadlock that ended the wait
	number uint32
	sights int // looks in a row that found a cycle
}

// firstLook is how long a wait lasts before it is looked at. Each pause after that is twice as long, up to lastPause.
const firstLook, lastPause = time.Second, 30 * time.Second

// traced is ctx for an acquisition by the calling goroutine, of which the tracer is told; ctx itself without a tracer.
func (s *side) traced(ctx context.Context, ahead func() int) (context.Context, *lease.Tracing) {
	tr := lease.Trace(asked(ctx), s.at, s.q.Kind, ahead)
	if tr == nil {
		return ctx, nil
	}
	if g, ok := ctx.(*guard); ok { // it does not look: see monitor
		g.Context, g.asked, g.tr = tr, tr.Context, tr
		return g, tr
	}
	return tr, tr
}

// traceNext is traced for a lease that takes the place of another one of this process. A tracer sees the end of each
// lease, so it sees the beginning of this one, too: an acquisition that does not wait. The lease keeps the context.
func (s *side) traceNext(ctx context.Context) (context.Context, *lease.Tracing) {
	ctx, tr := s.traced(ctx, func() int { return 0 })
	tr.Passed(nil)
	return asked(ctx), tr
}

// unknown is how many entries are ahead of a caller that queues by itself, before it has asked.
func unknown() int { return -1 }

// guarded is ctx for an acquisition by the calling goroutine; ctx itself and nil without deadlock detection, or if the caller has
// such a context already.
func (s *side) guarded(ctx context.Context) (context.Context, *guard) {
	if g, ok := ctx.(*guard); ok {
		return g, nil
	}
	if s.at.Settings.Deadlocks == nil || s.at.Misuse() != nil {
		return ctx, nil
	}
	g := &guard{
		Context: ctx, tr: tracingOf(ctx), asked: asked(ctx),
		s: s, held: lease.Held(ctx, s.at.Session, s.at.Path), began: time.Now(), pause: firstLook,
	}
	g.said.Under = s.at.Under("")
	if len(g.held) > 0 || g.said.Under == "" {
		g.said.Under = node.FormatUnder(tokens(g.held))
	}
	return g, g
}

// asked is the context of the caller, or what the tracer has made of it: a lease must not keep what is added to that for the acquisition.
func asked(ctx context.Context) context.Context {
	switch c := ctx.(type) {
	case *guard:
		return c.asked
	case *lease.Tracing:
		return c.Context
	}
	return ctx
}

// tracingOf is that of the acquisition whose context is ctx; nil without a tracer.
func tracingOf(ctx context.Context) *lease.Tracing {
	switch c := ctx.(type) {
	case *guard:
		return c.tr
	case *lease.Tracing:
		return c
	}
	return nil
}

// saidOf is for the entry of such an acquisition, if its caller queues alone; nil if that says nothing and learns nothing.
func saidOf(ctx context.Context) *queue.Waiter {
	switch c := ctx.(type) {
	case *guard:
		return &c.said
	case *lease.Tracing:
		return &c.Said
	}
	return nil
}

func tokens(held []*lease.Lease) (all []node.Token) {
	for _, l := range held {
		all = append(all, l.Token())
	}
	return all
}

// watch has g look from now on. A caller that holds nothing is no part of a cycle.
func (g *guard) watch() {
	if g == nil || len(g.held) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Context, g.cancel = context.WithCancel(g.Context)
	g.timer = time.AfterFunc(g.pause, g.due)
}

func (g *guard) due() { g.s.at.Session.Spawn(g.look) }

// stop ends the looks. The wait is over.
func (g *guard) stop() {
	if g == nil || g.timer == nil {
		return
	}
	g.cancel()
	g.timer.Stop()
	waitsOf(g.s.at.Session).remove(g)
}

// stand notes how to find out where the wait stands: entry is the name of the entry that it waits with, if that is its own, or behind.
func (g *guard) stand(stands func() (entry string, own bool)) {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stands = stands
	}
}

// standing is where the wait stands: entry is "" if that is not known.
func (g *guard) standing() (entry string, own bool) {
	g.mu.Lock()
	stands := g.stands
	g.mu.Unlock()
	if stands == nil {
		return "", false
	}
	return stands()
}

// deadlock is the error with which g has ended the wait; nil if it has not.
func (g *guard) deadlock() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.found
}

// reason is err, or the deadlock that has ended the wait.
func (g *guard) reason(err error) error {
	if found := g.deadlock(); found != nil && err != nil && !g.s.at.Session.Closing() {
		return found
	}
	return err
}

// look looks for a cycle, and ends the wait, or looks again later: an error is no reason to end it. Of the waits of a cycle the newest
// ends first. Perhaps it does not look for deadlocks, or cannot. So each other one ends two looks after the next newer one.
func (g *guard) look() {
	ctx, cancel := g.s.at.Session.Bounded(g)
	defer cancel()
	waitsOf(g.s.at.Session).add(g)
	cycle, err := g.search(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.Err() != nil:
		return
	case cycle == nil || err != nil:
		g.sights = 0
	case g.sights >= 2*cycle.newer():
		g.found = fmt.Errorf("%w: %s", errs.ErrDeadlock, cycle.Text(time.Now()))
		g.cancel()
		return
	default:
		g.sights++
	}
	g.pause = min(2*g.pause, lastPause)
	g.timer.Reset(g.pause)
}

// waitsKey names the guards that look, among what a session shares.
type waitsKey struct{}

// waiting are the guards of a session that look.
type waiting struct {
	mu    sync.Mutex
	count uint32
	all   map[*guard]struct{}
	told  bool // that there were too many paths
}

func waitsOf(s *session.Session) *waiting {
	return s.Shared(waitsKey{}, func() any { return &waiting{all: map[*guard]struct{}{}} }).(*waiting)
}

func (w *waiting) add(g *guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.all[g]; !there && g.Err() == nil {
		w.count++
		g.number = w.count
		w.all[g] = struct{}{}
	}
}

func (w *waiting) remove(g *guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, g)
}

// list are the guards in the order in which they came.
func (w *waiting) list() (all []*guard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.all {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *guard) int { return cmp.Compare(a.number, b.number) })
	return all
}
