package zkwaitgroup

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// server is a plain model of one record and its round, and of a change of it.
type server struct {
	p       *change
	rec     *tally
	lives   bool // it has a node in alive
	died    bool
	others  bool  // a member of another record lives
	clock   int64 // the zxid
	members int64 // when the directory of the records was written to
	removed int64 // when this record or others were removed before the round; 0 if none were
	round   int64
	over    bool // no member was alive at some time
	applied bool
	refused error
}

// steps are what may happen to a record while a change is under way. Each reports whether it may happen now.
var steps = map[string]func(s *server) bool{
	"the change arrives": func(s *server) bool {
		d := s.p
		switch {
		case s.applied || s.refused != nil:
			return false
		case s.round == 0:
			s.refused = &zkconn.TxnError{Index: 0, Err: zk.ErrNoNode}
		case s.rec == nil:
			s.refused = &zkconn.TxnError{Index: 1, Err: zk.ErrNoNode}
		case s.rec.version != d.old.version:
			s.refused = &zkconn.TxnError{Index: 1, Err: zk.ErrBadVersion}
		default:
			s.applied = true
			s.write(d.now, d.own != nil)
		}
		return true
	},
	"another one takes a member": func(s *server) bool {
		if s.rec == nil || s.rec.left() == 0 {
			return false
		}
		r := *s.rec
		r.Taken = map[string]int{"another": 0}
		maps.Copy(r.Taken, s.rec.Taken)
		r.Taken["another"]++
		s.write(r, false)
		return true
	},
	"its owner is done": func(s *server) bool {
		if s.p.own != nil || s.died || s.rec == nil || s.rec.left() == 0 { // we are the owner, and have one change under way
			return false
		}
		r := *s.rec
		r.N--
		s.write(r, true)
		return true
	},
	"its owner adds": func(s *server) bool {
		if s.p.own != nil || s.rec == nil || s.round != 1 || s.died { // as above
			return false
		}
		r := *s.rec
		r.N++
		s.lives = true
		s.write(r, true)
		return true
	},
	"its owner dies": func(s *server) bool {
		if s.p.own != nil { // then our session is over, and nothing is asked
			return false
		}
		was := s.lives
		s.lives, s.died = false, true
		return was
	},
	"its record is removed before the round": func(s *server) bool { // by the process that claimed the removal
		if s.rec == nil || s.lives || s.others {
			return false
		}
		s.rec = nil
		s.remove()
		return true
	},
	"records are removed before it": func(s *server) bool { // likewise
		if s.removed != 0 || s.round != 1 || s.lives || s.others {
			return false
		}
		s.remove()
		return true
	},
	"another one queues for the turn": func(s *server) bool {
		was := s.members
		s.clock++
		s.members = s.clock
		return was == 0
	},
	"the round ends": func(s *server) bool {
		if s.round == 0 || s.lives || s.others || s.round == 2 {
			return false
		}
		s.rec, s.round = nil, 0
		return true
	},
	"another member is added":  func(s *server) bool { was := s.others; s.others = s.round == 1; return s.others && !was },
	"the other member is done": func(s *server) bool { was := s.others; s.others = false; return was },
	"a round begins":           func(s *server) bool { was := s.round; s.round = 2; return was == 0 },
}

// remove removes records before the round.
func (s *server) remove() {
	s.clock++
	s.removed = s.clock
}

// seen is the round that WaitGroup.settle finds.
func (s *server) seen() int64 {
	if s.rec == nil && s.round == 1 && (!s.others || s.p.own == nil && s.p.outlivedBy(s.removed)) {
		return 0
	}
	return s.round
}

// write writes the record as everybody does.
func (s *server) write(r tally, own bool) {
	r.version++
	s.clock++
	r.written = s.clock
	s.rec = &r
	if r.left() == 0 {
		s.lives = false
		if own && len(r.Taken) == 0 {
			s.rec = nil
		}
	}
}

// Whatever happens to a record while a change is under way whose answer is lost, or that is refused, the look afterwards shows
// whether it was made. The exception is a Done that was not made in a round that is over, for which nobody waits any more.
func TestALookShowsWhetherAChangeWasMade(t *testing.T) {
	const most = 6
	played, vague := 0, 0
	names := slices.Sorted(maps.Keys(steps))
	var play func(begin func() *server, path []string)
	play = func(begin func() *server, path []string) {
		s := begin()
		for _, name := range path {
			if !steps[name](s) {
				return
			}
			s.over = s.over || !s.lives && !s.others
		}
		for _, heard := range []bool{false, s.refused != nil} {
			if heard {
				s.p.refused = s.refused
			}
			made := s.p.wasMade("we", s.rec, s.seen())
			played++
			d := s.p
			over := s.rec == nil && s.over
			certain := heard && d.own != nil && (record.RefusedAt(s.refused, 0, zk.ErrNoNode) || s.round == 2 && errors.Is(s.refused, zk.ErrNoNode))
			forNobody := made && !certain && d.now.left() < d.old.left()
			early := !made && d.now.left() > d.old.left()
			if over && s.applied != made && (forNobody || early) {
				vague++
				continue
			}
			if s.applied == made {
				continue
			}
			require.Equal(t, s.applied, made, "%+v: %v, then asked for %+v, heard %v", *d.old, path, d.now, s.p.refused)
		}
		if len(path) < most {
			for _, name := range names {
				play(begin, append(path[:len(path):len(path)], name))
			}
		}
	}
	for n := 1; n <= 3; n++ {
		for taken := range n {
			for _, what := range []string{"add", "done", "take"} {
				play(func() *server { return newServer(n, taken, what) }, nil)
			}
		}
	}
	t.Logf("%d looks, %d of which are exceptions", played, vague)
	require.Less(t, vague, played/2)
}

// newServer has a record of n members of which another one took some, and a change.
func newServer(n, taken int, what string) *server {
	r := tally{N: n, written: 1}
	if taken > 0 {
		r.Taken = map[string]int{"another": taken}
	}
	d := &change{own: &own{}, old: &r, now: r, round: 1}
	switch what {
	case "add":
		d.now.N++
	case "done":
		d.now.N--
	case "take":
		d.own = nil
		d.now.Taken = map[string]int{"we": 1, "another": taken}
	}
	return &server{p: d, rec: &r, lives: true, round: 1, clock: 1}
}
