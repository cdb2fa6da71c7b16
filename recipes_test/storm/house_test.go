package storm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// house is a process. When its session is closed another one begins in its place.
type house struct {
	w     *world
	index int

	timeout time.Duration
	opts    []zksync.SessionOption
	closing atomic.Bool // and another one begins

	dialled, begun minutes // guarded by the meter's mutex

	mu     sync.Mutex
	s      *zksync.Session
	things map[string]any
	harped time.Time // until when servers gave answers that settle nothing
	age    int       // how many sessions were closed
	ids    map[int64]bool
}

func newHouse(w *world, index int) *house {
	h := &house{w: w, index: index, ids: map[int64]bool{}}
	h.timeout = []time.Duration{4, 6, 10}[w.rnd.IntN(3)] * time.Second
	h.opts = w.secret
	if w.rnd.IntN(4) == 0 {
		h.opts = append(slices.Clone(h.opts), zksync.WithLeaseFraction(0.5), zksync.WithName(h.String()), zksync.WithTracer(w.tracer))
	}
	h.open()
	if w.srv.still && index > 0 {
		far := time.Duration(10*index) * ms
		h.slow(far, far)
	}
	return h
}

func (h *house) String() string {
	return fmt.Sprintf("h%d", h.index)
}

// open connects, however long that takes.
func (h *house) open() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	s, err := zksync.Connect(ctx, h.w.srv.addresses(), append(h.opts, zksync.WithDialer(h.w.dial(h)), zksync.WithTimeout(h.timeout))...)
	if err != nil {
		h.w.must(false, "%s cannot begin: %v", h, err)
	}
	(*session.Session)(s).OnPark(func(err error) { panic(err) }) // an actor goes on in the next session
	h.mu.Lock()
	defer h.mu.Unlock()
	h.s, h.things = s, map[string]any{}
}

// session is that of the moment.
func (h *house) session() *zksync.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.s
}

// id is that of the ZooKeeper session of the moment.
func (h *house) id() int64 { return h.session().ID() }

func (h *house) years() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.age
}

// unsettle notes that requests will get answers for d that settle nothing.
func (h *house) unsettle(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.harped) {
		h.harped = until
	}
}

// unsettledSince reports whether such answers may be the cause of what was told since a time. It may be a goroutine that was there
// before who got them, and went on trying for a second or two.
func (h *house) unsettledSince(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return t.Before(h.harped.Add(2 * time.Second))
}

// tie is what a process has on the servers by its session of a time.
type tie struct {
	h       *house
	session int64
	age     int
}

func (h *house) tie() tie { return tie{h, h.id(), h.years()} }

func (t tie) holds() bool {
	return t.h.w.lives(t.session)
}

// thing is an object that the goroutines of a process share, until its session is closed.
func thing[T any](h *house, key string, make func(s *zksync.Session) T) T {
	h.mu.Lock()
	defer h.mu.Unlock()
	t, ok := h.things[key].(T)
	if !ok {
		t = make(h.s)
		h.things[key] = t
	}
	return t
}

// close ends the session.
func (h *house) close() {
	h.mu.Lock()
	s := h.s
	h.age++
	h.mu.Unlock()
	if err := s.Close(); err != nil {
		h.w.must(false, "%s: Close: %v", h, err)
	}
}

// calm takes away what the network still does.
func (h *house) calm() {
	h.mu.Lock()
	ids := h.ids
	h.ids = map[int64]bool{}
	h.mu.Unlock()
	for id := range ids {
		h.w.srv.Delay(id, 0, 0)
	}
}

// slow gives a latency to the network of the session of the moment.
func (h *house) slow(there, back time.Duration) {
	id := h.id()
	h.mu.Lock()
	h.ids[id] = true
	h.mu.Unlock()
	h.w.srv.Delay(id, there, back)
}

// errOwn is what functions of ours return, or panic with, on purpose.
var errOwn = errors.New("on purpose")
