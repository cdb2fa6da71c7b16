package proving

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// Strike is what happens at one request of a play. A play is a small scenario; it calls Falls once, when what it does to
// prepare itself is done.
type Strike struct {
	Name string // for messages of failures

	nth   int32 // the request that is struck, counted from 1; 0 for none
	made  atomic.Int32
	fired atomic.Int32
}

// Rehearsals before a play is struck, and how often a play is played until chance has it make the request that is to
// be struck.
const (
	rehearsals = 8
	attempts   = 500
)

// EveryRequest rehearses a play to learn how many requests it makes, and then plays it once for each of them. It fails
// if a strike does not strike exactly once. With -short a part of the requests is struck, see Drawn.
//
// Most plays make the same requests each time, because Falls has no two requests arrive at one instant. Some draw whom
// they watch. Of those a request counts that two rehearsals made; a play that does not come as far as the request that is
// to be struck has tested nothing, and is played again.
func EveryRequest(t *testing.T, name string, play func(s *Strike)) {
	t.Helper()
	made := make([]int32, rehearsals)
	for i := range made {
		s := &Strike{Name: name + ": rehearsal"}
		play(s)
		made[i] = s.made.Load()
	}
	slices.Sort(made)
	last := made[rehearsals-2]
	require.Positive(t, last, "%s: no request was made that could be struck", name)
	for nth := int32(1); nth <= last && !t.Failed(); nth++ {
		if Drawn(t, name, nth) {
			struck(t, &Strike{Name: fmt.Sprintf("%s at request %d of %d", name, nth, last), nth: nth}, play)
		}
	}
}

func struck(t *testing.T, s *Strike, play func(s *Strike)) {
	t.Helper()
	for n := 0; n < attempts && s.fired.Load() == 0 && !t.Failed(); n++ {
		s.made.Store(0)
		play(s)
	}
	require.EqualValues(t, 1, s.fired.Load(), "%s: it struck nothing", s.Name)
}

// Falls has happen decide what becomes of the request that is to be struck, until calm is called. Requests are counted
// from now on. From now on, too, the network of each session has a delay of its own, so that what the sessions do does not
// depend on who is first of several at one instant.
func (s *Strike) Falls(srv *zktest.Server, happen func(q *zktest.Request) zktest.Verdict) (calm func()) {
	for i, session := range srv.Sessions() {
		hop := time.Millisecond + time.Duration(i)*137*time.Microsecond
		srv.Delay(session.ID, hop, hop)
	}
	return srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !Counts(q) || s.made.Add(1) != s.nth {
			return zktest.Verdict{}
		}
		s.fired.Add(1)
		return happen(q)
	})
}

// Counts reports whether a request is one of a recipe: the others keep a session alive, begin or end it.
func Counts(q *zktest.Request) bool {
	switch q.Op {
	case zktest.Connect, zktest.Ping, zktest.CloseSession, zktest.SetAuth:
		return false
	}
	return q.Op != zktest.Sync || q.Path != zkconn.Heartbeat
}
