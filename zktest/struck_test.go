package zktest_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// atTheEnd runs f with a server and a client, and returns what has failed the test by its end.
func atTheEnd(t *testing.T, f func(srv *zktest.Server, conn *zk.Conn)) []string {
	tb := &fakeTB{TB: t}
	synctest.Test(t, func(*testing.T) {
		srv := zktest.Run(tb)
		f(srv, srv.Connect(tb, 10*time.Second))
		tb.finish()
	})
	return tb.errors
}

func TestARuleThatNeverStruckFailsTheTestAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    *zktest.Rule
		text    string
		matched int
	}{
		{zktest.On(zktest.Create, "/nn").LoseReply(), `On(create, "/nn")`, 0},
		{zktest.On(zktest.Create, "/n*").Nth(3).Hold(), `On(create, "/n*").Nth(3)`, 2},
		{zktest.On(zktest.Delete, "**").Times(2).Delay(time.Second), `On(delete, "**").Times(2)`, 0},
		{zktest.On(zktest.Any, "**").Of(7).Error(zktest.CodeNoAuth), `On(any, "**").Of(0x7)`, 0},
		{zktest.On(zktest.EventDeleted, "/n").Lose(), `On(nodeDeleted, "/n")`, 0},
		{zktest.On(zktest.SetData, "/n").DelayReply(time.Second), `On(setData, "/n")`, 0},
	} {
		for _, removed := range []bool{false, true} {
			line := 0
			errors := atTheEnd(t, func(srv *zktest.Server, conn *zk.Conn) {
				_, _, line, _ = runtime.Caller(0)
				in := srv.Intercept(c.rule) // the next line
				mustCreate(t, conn, "/n", 0)
				mustCreate(t, conn, "/n2", 0)
				if removed {
					in.Remove()
				}
			})
			require.Len(t, errors, 1, c.text)
			require.Contains(t, errors[0], "zktest: rules that never struck")
			require.Contains(t, errors[0], fmt.Sprintf("  %s at struck_test.go:%d has matched %d, acted on 0, holds 0\ntree:\n", c.text, line+1, c.matched))
			require.Contains(t, errors[0], "create /n zxid", "the last requests show the right path")
		}
	}
}

func TestARuleThatStruckOrNeedNotDoesNotFailTheTest(t *testing.T) {
	t.Parallel()
	for text, rule := range map[string]*zktest.Rule{
		"struck":            zktest.On(zktest.Create, "/n").DelayReply(time.Second),
		"struck less often": zktest.On(zktest.Create, "/n").Times(2).Delay(time.Second),
		"maybe":             zktest.On(zktest.Create, "/other").LoseReply().Maybe(),
		"maybe, in between": zktest.On(zktest.Create, "/other").Maybe().Nth(3).LoseReply(),
		"only counts":       zktest.On(zktest.Create, "/other"),
		"at the very end":   zktest.On(zktest.CloseSession, "**").DelayReply(time.Millisecond),
	} {
		require.Empty(t, atTheEnd(t, func(srv *zktest.Server, conn *zk.Conn) {
			srv.Intercept(rule)
			mustCreate(t, conn, "/n", 0)
		}), text)
	}
}

type skippedTB struct{ fakeTB }

func (*skippedTB) Skipped() bool { return true }

func TestATestThatSkipsNeedNoRuleToStrike(t *testing.T) {
	t.Parallel()
	tb := &skippedTB{fakeTB{TB: t}}
	synctest.Test(t, func(*testing.T) {
		zktest.Run(tb).Intercept(zktest.On(zktest.Create, "/n").LoseReply())
		tb.finish()
	})
	require.Empty(t, tb.errors)
}

func TestErrorsThatNoRequestMetFailTheTest(t *testing.T) {
	t.Parallel()
	set := func(ops ...zktest.Op) []string {
		return atTheEnd(t, func(srv *zktest.Server, conn *zk.Conn) {
			clear := srv.SetError(zktest.CodeNoAuth, ops...)
			_, _, _ = conn.Exists("/")
			clear()
		})
	}
	require.Empty(t, set())
	require.Empty(t, set(zktest.Create, zktest.Exists), "one of them is enough")
	errors := set(zktest.Create, zktest.Delete)
	require.Len(t, errors, 1)
	require.Contains(t, errors[0], `On(create, "**")`)
	require.Contains(t, errors[0], `On(delete, "**")`)
}

func TestARuleOfAnEnsembleIsToStrikeAtOneMember(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{"/n": "", "/other": `On(create, "/n").Nth(1)`} {
		tb := &fakeTB{TB: t}
		synctest.Test(t, func(t *testing.T) {
			e := zktest.RunEnsemble(tb, 3)
			e.Intercept(zktest.On(zktest.Create, "/n").Nth(1).DelayReply(time.Second))
			mustCreate(t, e.ConnectAt(tb, 1, 10*time.Second), path, 0)
			tb.finish()
		})
		if says == "" {
			require.Empty(t, tb.errors)
			continue
		}
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], says)
		require.Contains(t, tb.errors[0], "member 2: tree:")
	}
}

func TestAFaultOfASessionThatThereNeverWasFailsTheTest(t *testing.T) {
	t.Parallel()
	for what, fault := range map[string]func(*zktest.Server, int64) func(){
		"Partition":      (*zktest.Server).Partition,
		"DropRequests":   (*zktest.Server).DropRequests,
		"DropReplies":    (*zktest.Server).DropReplies,
		"ExpireSilently": (*zktest.Server).ExpireSilently,
		"Delay":          func(s *zktest.Server, id int64) func() { return s.Delay(id, time.Second, 0) },
		"Expire":         func(s *zktest.Server, id int64) func() { s.Expire(id); return func() {} },
		"Disconnect":     func(s *zktest.Server, id int64) func() { s.Disconnect(id); return func() {} },
	} {
		require.Empty(t, atTheEnd(t, func(srv *zktest.Server, conn *zk.Conn) {
			fault(srv, conn.SessionID())()
			fault(srv, 0)()
			srv.Expire(conn.SessionID())
			fault(srv, conn.SessionID())() // its client may still ask for it
		}), what)
		for _, off := range []int64{-1, 1} {
			errors := atTheEnd(t, func(srv *zktest.Server, conn *zk.Conn) { fault(srv, conn.SessionID()+off)() })
			require.Len(t, errors, 1, what)
			require.Contains(t, errors[0], "zktest: "+what+": there was no session 0x")
			require.Contains(t, errors[0], "; those that live: 0x1dc6acfac000001")
		}
	}
}

func TestAFaultOfASessionThatAnEnsembleNeverHadFailsTheTest(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{TB: t}
	synctest.Test(t, func(*testing.T) {
		e := zktest.RunEnsemble(tb, 3)
		id := e.ConnectAt(tb, 1, 10*time.Second).SessionID()
		e.Partition(id)()
		e.Server(0).Partition(id)()
		e.Pin(id, 1)()
		e.Disconnect(0)
		e.Expire(0)
		require.Empty(t, tb.errors)
		e.Partition(id + 1)()
		e.Pin(id+1, 1)()
		e.Server(2).DropReplies(id + 1)()
		require.False(t, e.Disconnect(id+1))
		require.False(t, e.Expire(id+1))
		tb.finish()
	})
	require.Len(t, tb.errors, 5)
}
