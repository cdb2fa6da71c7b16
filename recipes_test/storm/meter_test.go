package storm_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// How many requests a session may send. A loop without a pause sends without end in an instant where the network takes no
// time, and hundreds in a second where it takes a millisecond or two.
const (
	perInstant = 150
	perSecond  = 800
)

// meter stands between the clients and the server: it counts, and has faults strike.
type meter struct {
	w *world

	mu      sync.Mutex // innermost: the server calls with its own lock held
	rates   map[int64]*rate
	dials   map[*house]*rate
	strikes map[int64][]*strike
	hop     int // requests take less than so many milliseconds
	rnd     *rand.Rand
	owners  map[string]int64 // of nodes
	doomed  map[int64]bool   // sessions that were ended by force
	removed map[string]bool  // nodes that were removed by hand
	chased  map[int64]string // directories in which a session's nodes are removed as soon as they are there
}

// rate is what a session has sent.
type rate struct {
	instant, second time.Time
	now, lately     int
	wild            bool
}

// strike is what befalls the first request of a kind.
type strike struct {
	op   zktest.Op
	path string // any if empty
	skip int
	zktest.Verdict
	then *zktest.Verdict // befalls the same request when it is repeated
	all  bool            // it befalls all of the kind, until it is taken away
}

func newMeter(w *world) *meter {
	return &meter{w: w, rates: map[int64]*rate{}, dials: map[*house]*rate{}, strikes: map[int64][]*strike{}, owners: map[string]int64{},
		doomed: map[int64]bool{}, removed: map[string]bool{}, chased: map[int64]string{}, hop: []int{0, 1, 3, 20}[w.rnd.IntN(4)], rnd: w.stream(1)}
}

// counts counts one more, and tells what is too many.
func (r *rate) counts(now time.Time) (problem string) {
	if r.instant != now {
		r.instant, r.now = now, 0
	}
	if now.Sub(r.second) >= time.Second {
		r.second, r.lately = now, 0
	}
	r.now++
	r.lately++
	switch {
	case r.wild:
	case r.now > perInstant:
		problem = fmt.Sprintf("%d requests in an instant", r.now)
	case r.lately > perSecond:
		problem = fmt.Sprintf("%d requests in a second", r.lately)
	}
	r.wild = r.wild || problem != ""
	return problem
}

// judge is what befalls a request. Whoever sends too many has to wait for each from then on, or time would stand still.
func (m *meter) judge(q *zktest.Request) zktest.Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rates[q.Session]
	if r == nil {
		r = &rate{}
		m.rates[q.Session] = r
	}
	if problem := r.counts(time.Now()); problem != "" {
		m.w.spoilt.Store(true)
		m.w.must(false, "a request storm: %s of session %x, the last a %v of %s", problem, q.Session, q.Op, q.Path)
	}
	if r.wild {
		return zktest.Verdict{Delay: time.Second}
	}
	switch q.Op {
	case zktest.Connect, zktest.Ping, zktest.CloseSession, zktest.SetAuth:
		return zktest.Verdict{}
	}
	for i, s := range m.strikes[q.Session] {
		if s.all && q.Op == zktest.SetWatches { // no server refuses that
			continue
		}
		if s.op != zktest.Any && q.Op != s.op && !slices.Contains(q.Ops, s.op) || s.path != "" && s.path != q.Path {
			continue
		}
		if s.skip--; s.skip >= 0 {
			break
		}
		if !s.all {
			m.strikes[q.Session] = slices.Delete(m.strikes[q.Session], i, i+1)
		}
		if s.then != nil {
			m.strikes[q.Session] = append(m.strikes[q.Session], &strike{op: q.Op, path: q.Path, Verdict: *s.then})
		}
		m.w.tell("struck: %v %s of %x", q.Op, q.Path, q.Session)
		return s.Verdict
	}
	if m.hop == 0 {
		return zktest.Verdict{}
	}
	return zktest.Verdict{Delay: time.Duration(m.rnd.IntN(m.hop)) * ms}
}

// dialled counts the connections that a program opens itself.
func (m *meter) dialled(h *house) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.dials[h]
	if r == nil {
		r = &rate{}
		m.dials[h] = r
	}
	if problem := r.counts(time.Now()); problem != "" {
		m.w.spoilt.Store(true)
		m.w.must(false, "%s dials without a pause: %s", h, problem)
	}
}

// strikes has something befall a session's requests.
func (m *meter) strike(session int64, s *strike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.strikes[session] = append(m.strikes[session], s)
}

// spare takes a strike away.
func (m *meter) spare(session int64, s *strike) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.strikes[session] = slices.DeleteFunc(m.strikes[session], func(x *strike) bool { return x == s })
}

// calm forgets what has not struck.
func (m *meter) calm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.strikes)
}

// commit keeps whose the nodes are.
func (m *meter) commit(t zktest.Txn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range t.Changes {
		if c.Kind == zktest.Created && c.Owner != 0 {
			m.owners[c.Path] = c.Owner
			if path.Dir(c.Path) == m.chased[c.Owner] {
				m.removed[c.Path] = true
				m.w.removes(c.Path)
			}
		}
	}
}

// chase has a session's nodes in a directory removed by hand as soon as they are there; none if dir is empty.
func (m *meter) chase(session int64, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chased[session] = dir
}

// excused tells whether a lease may be valid although the servers have granted to somebody else: its
// session was ended, or its node removed, by force.
func (m *meter) excused(l *zksync.Lease) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed[l.Path()] || m.doomed[m.owners[l.Path()]]
}

func (m *meter) doom(session int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doomed[session] = true
}

func (m *meter) remove(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removed[path.Clean(node)] = true
}
