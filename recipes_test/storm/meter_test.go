package storm_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"strings"
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

// How many connections and sessions a program asks for in a minute at most, while faults follow each other without a pause.
const (
	connectionsAMinute = 300
	sessionsAMinute    = 40
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
	removed map[string]bool  // nodes that were removed externally
	total   int
	lost    []loss           // when entries of a lock with a delay went, and left their marks
	marks   map[string]bool  // of holds of the lock with a delay, by uuid
	chased  map[int64]string // directories in which a session's nodes are removed as soon as they are there
}

// rate is what a session has sent.
type rate struct {
	instant, second time.Time
	now, lately     int
	wild            bool
}

// minutes counts what happens in each minute.
type minutes struct {
	from time.Time
	n    int
}

func (x *minutes) counts(w *world, h *house, what string, most int) {
	now := time.Now()
	if now.Sub(x.from) >= time.Minute {
		x.from, x.n = now, 0
	}
	x.n++
	w.most(what, x.n)
	if w.srv.still {
		most = 1 // nothing is ever lost
	}
	if x.n == most+1 {
		w.must(false, "%s asks for more than %d %s in a minute", h, most, what)
	}
}

// strike is what befalls the first request of a kind.
type strike struct {
	op   zktest.Op
	path string // any if empty
	skip int
	zktest.Verdict
	then *zktest.Verdict // befalls the same request when it is repeated
	all  bool            // it befalls all of the kind, until it is taken away
	lags bool            // a sync of the session ends it, as it ends the lag of a server
}

func newMeter(w *world) *meter {
	return &meter{w: w, rates: map[int64]*rate{}, dials: map[*house]*rate{}, strikes: map[int64][]*strike{}, owners: map[string]int64{},
		doomed: map[int64]bool{}, removed: map[string]bool{}, marks: map[string]bool{}, chased: map[int64]string{}, hop: []int{0, 1, 3, 20}[w.rnd.IntN(4)], rnd: w.stream(1)}
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
	m.total++
	switch q.Op {
	case zktest.Connect:
		if m.w.srv.slow {
			return zktest.Verdict{Delay: time.Duration(m.rnd.IntN(1500)) * ms}
		}
		return zktest.Verdict{}
	case zktest.Ping, zktest.CloseSession, zktest.SetAuth:
		return zktest.Verdict{}
	}
	if q.Op == zktest.Sync {
		m.strikes[q.Session] = slices.DeleteFunc(m.strikes[q.Session], func(s *strike) bool { return s.lags })
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

// requests is how many there were.
func (m *meter) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
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
	h.dialled.counts(m.w, h, "connections", connectionsAMinute)
	if problem := r.counts(time.Now()); problem != "" {
		m.w.spoilt.Store(true)
		m.w.must(false, "%s dials without a pause: %s", h, problem)
	}
}

// door is a connection that a program has opened. Its first message says whether it asks for a new session.
type door struct {
	net.Conn
	h     *house
	asked bool
}

func (d *door) Write(b []byte) (int, error) {
	const session = 4 + 4 + 8 + 4 // length, version, zxid, timeout
	if !d.asked && len(b) >= session+8 {
		d.asked = true
		if binary.BigEndian.Uint64(b[session:]) == 0 {
			d.h.w.meter.begins(d.h)
		}
	}
	return d.Conn.Write(b)
}

// begins counts the sessions that a program asks for.
func (m *meter) begins(h *house) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h.begun.counts(m.w, h, "sessions", sessionsAMinute)
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
	m.losses(t)
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

// losses notes the holds of the lock with a delay that are lost: an entry goes, and its mark stays.
func (m *meter) losses(t zktest.Txn) {
	for _, c := range t.Changes {
		if c.Kind == zktest.Created && strings.HasPrefix(c.Path, mutexPath+"/held-") {
			m.marks[uuidOf(c.Path)] = true
		}
		if c.Kind == zktest.Deleted && strings.HasPrefix(c.Path, mutexPath+"/held-") {
			uuid := uuidOf(c.Path)
			delete(m.marks, uuid)
			// The maker removes the mark of a place that only lingered. A fault that removes one ends the delay.
			m.lost = slices.DeleteFunc(m.lost, func(l loss) bool {
				return l.uuid == uuid && (t.Session == l.owner || m.removed[c.Path])
			})
		}
	}
	for _, c := range t.Changes {
		if c.Kind == zktest.Deleted && path.Dir(c.Path) == mutexPath && m.marks[uuidOf(c.Path)] {
			m.w.tell("lost: %s", c.Path)
			m.lost = append(m.lost, loss{time.Now().Truncate(ms), uuidOf(c.Path), m.owners[c.Path]}) // the servers count whole milliseconds
		}
	}
}

// loss is that of a hold, as far as its mark tells.
type loss struct {
	at    time.Time
	uuid  string
	owner int64 // the session
}

// uuidOf is that of an entry or of its mark.
func uuidOf(node string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(path.Base(node), "held-"), "_c_")
	return name[:min(36, len(name))]
}

// delayed tells the time of a loss that is not yet d ago.
func (m *meter) delayed(d time.Duration) (at time.Time, early bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.lost); n > 0 && time.Since(m.lost[n-1].at) < d {
		return m.lost[n-1].at, true
	}
	return time.Time{}, false
}

// chase has a session's nodes in a directory removed externally as soon as they are there; none if dir is empty.
func (m *meter) chase(session int64, dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.chased[session] = dir
}

// excused reports whether a lease may be valid although the servers have granted to somebody else: its
// session was ended, or its node removed, by force.
func (m *meter) excused(l *zksync.Lease) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.removed[l.Node()] || m.doomed[m.owners[l.Node()]]
}

// doomedSession reports whether a session was ended by force.
func (m *meter) doomedSession(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.doomed[id]
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
