package faults_test

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// line is one queue as the server has it, with the plain rules by which it is granted: what
// holders believe is compared with that.
type line struct {
	dir  string
	srv  *zktest.Server
	base string // whose data says how many permits there are; empty for a lock

	mu     sync.Mutex
	events []*event
}

// event is one transaction that touched the queue, or the terms.
type event struct {
	at      time.Time
	changes []zktest.Change
	permits int64 // from then on; 0 if that was not touched
}

// spot is one entry of the queue.
type spot struct {
	node   string // without its directory
	kind   string
	number int64
	weight int64
	owner  int64     // the session
	from   time.Time // when the server granted; zero if it has not
	gone   time.Time // zero if it is there
	unfit  bool      // was granted when there were more permits; its owner may not have heard of that in time
}

// exclusive reports whether nobody else may hold beside it.
func (s *spot) exclusive() bool { return s.kind != "__READ__" && s.weight == 0 }

// grant is the server's decision, as a plain reader of its history knows it.
type grant struct {
	at      time.Time
	spot    *spot
	others  []*spot // that were granted and there at that very moment
	permits int64   // that there were
}

var entryName = regexp.MustCompile(`(-lock-|__READ__|__WRIT__|-permit-(\d+)-)(\d{10})$`)

func newLine(srv *zktest.Server, dir, base string) *line {
	l := &line{dir: dir, srv: srv, base: base}
	srv.OnCommit(l.commit)
	return l
}

// commit is told of every transaction, at its instant.
func (l *line) commit(t zktest.Txn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &event{at: t.Time}
	for _, c := range t.Changes {
		switch {
		case path.Dir(c.Path) == l.dir && c.Kind != zktest.DataChanged:
			e.changes = append(e.changes, c)
		case c.Path == l.base && c.Kind != zktest.Deleted:
			go l.read(e) // the server is locked
		default:
			continue
		}
		if n := len(l.events); n == 0 || l.events[n-1] != e {
			l.events = append(l.events, e)
		}
	}
}

// read finds out what the terms are now.
func (l *line) read(e *event) {
	n, _ := l.srv.Node(l.base)
	permits := permitsIn(n.Data)
	l.mu.Lock()
	defer l.mu.Unlock()
	e.permits = permits
}

var termsData = regexp.MustCompile(`"(permits|capacity)":(\d+)`)

// permitsIn is the number that a semaphore's base node holds.
func permitsIn(data []byte) (n int64) {
	for _, m := range termsData.FindAllSubmatch(data, -1) {
		n, _ = strconv.ParseInt(string(m[2]), 10, 64) // the capacity comes after the permits and is the newer one
	}
	return n
}

// most is how many permits there ever were at once.
func (l *line) most() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		n = max(n, e.permits)
	}
	return n
}

// replay tells what was granted and when, and every entry there was.
func (l *line) replay() (grants []grant, all []*spot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var queue []*spot
	var permits int64
	for _, e := range l.events {
		if e.permits > 0 {
			permits = e.permits
		}
		for _, c := range e.changes {
			name := path.Base(c.Path)
			if c.Kind == zktest.Deleted {
				for _, s := range queue {
					if s.node == name {
						s.gone = e.at
					}
				}
				queue = slices.DeleteFunc(queue, func(s *spot) bool { return s.node == name })
				continue
			}
			if s := newSpot(name, c.Owner); s != nil {
				if i := slices.IndexFunc(queue, func(o *spot) bool { return o.number == s.number && !o.from.IsZero() }); i >= 0 {
					s.from = e.at // in the place of one that held: a downgrade, or what is left of several permits
				}
				queue, all = append(queue, s), append(all, s)
				slices.SortStableFunc(queue, func(a, b *spot) int { return int(a.number - b.number) })
			}
		}
		holding := granted(queue, permits)
		for _, s := range holding {
			if s.from.IsZero() {
				s.from = e.at
				grants = append(grants, grant{e.at, s, holding, permits})
			}
		}
	}
	return grants, all
}

func newSpot(name string, owner int64) *spot {
	m := entryName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	weight, _ := strconv.ParseInt(m[2], 10, 64)
	number, _ := strconv.ParseInt(m[3], 10, 64)
	return &spot{node: name, kind: m[1], number: number, weight: weight, owner: owner}
}

// granted are those of a queue that hold: a writer alone in front, readers in front of all
// writers, permits as long as all of them fit. A grant stays one.
func granted(queue []*spot, permits int64) (out []*spot) {
	var ahead int64
	exclusive := false
	for i, s := range queue {
		ahead += s.weight
		s.unfit = s.weight > 0 && ahead > permits
		switch {
		case !s.from.IsZero():
			out = append(out, s)
		case s.weight > 0:
			if !s.unfit {
				out = append(out, s)
			}
		case !exclusive && (i == 0 || !s.exclusive()):
			out = append(out, s)
		}
		exclusive = exclusive || s.exclusive()
	}
	return out
}

// now is the queue as it is, and which of it holds.
func (l *line) now() (queue, holding []*spot) {
	_, all := l.replay()
	for _, s := range all {
		if !s.gone.IsZero() {
			continue
		}
		queue = append(queue, s)
		if !s.from.IsZero() {
			holding = append(holding, s)
		}
	}
	return queue, holding
}
