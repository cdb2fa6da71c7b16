package zktest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAFaultThatOutlivesTheTestIsNamedBesideWhatIsLeftOver(t *testing.T) {
	t.Parallel()
	for says, fault := range map[string]func(*zktest.Server, *zk.Conn){
		"the server is frozen":             func(srv *zktest.Server, _ *zk.Conn) { srv.Freeze() },
		"the server is stopped":            func(srv *zktest.Server, _ *zk.Conn) { srv.Stop() },
		"the server is closed":             func(srv *zktest.Server, _ *zk.Conn) { srv.Close() },
		"0x1dc6acfac000001 is partitioned": func(srv *zktest.Server, c *zk.Conn) { srv.Partition(c.SessionID()) },
		"connections are refused": func(srv *zktest.Server, c *zk.Conn) {
			srv.Refuse()
			srv.Disconnect(c.SessionID())
		},
		"requests are intercepted (1)": func(srv *zktest.Server, _ *zk.Conn) {
			srv.Intercept(zktest.On(zktest.CloseSession, "**").Hold())
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			tb := &fakeTB{TB: t}
			srv := zktest.Run(tb)
			fault(srv, srv.Connect(tb, 10*time.Second))
			tb.finish()
			require.Len(t, tb.errors, 1, says)
			require.Contains(t, tb.errors[0], "session 0x1dc6acfac000001: ", says)
			require.Contains(t, tb.errors[0], "the end of a client may not have been heard: "+says+"\n(heal, thaw, restart or remove")
		})
	}
}

func TestWithoutAFaultNoneIsNamedBesideWhatIsLeftOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		conn := srv.Connect(t, 10*time.Second)
		srv.Partition(conn.SessionID())()
		srv.Freeze()()
		srv.Intercept(zktest.On(zktest.Any, "**").Hold().Maybe()).Remove()
		tb.finish()
		require.Len(t, tb.errors, 1)
		require.NotContains(t, tb.errors[0], "faults")
	})
}

// Nobody can end a session that its client was told is lost, but the server's clock.
func TestASessionThatItsClientHasGivenUpIsNotLeftOver(t *testing.T) {
	t.Parallel()
	for name, healed := range map[string]bool{"the partition ends with the test": true, "it does not end": false} {
		for _, n := range []int{1, 3} {
			synctest.Test(t, func(t *testing.T) {
				tb := &fakeTB{TB: t}
				e := zktest.RunEnsemble(tb, n, zktest.WithTick(10*time.Second)) // it expires long after its client gives it up
				s := e.Session(tb, zksync.WithTimeout(20*time.Second))
				l, err := zksync.NewMutex(s, "/lock").LockContext(t.Context())
				require.NoError(t, err)
				id := s.ID()
				heal := e.Partition(id)
				<-l.Done()
				lives := func() { zktest.CheckEphemerals(t, e.Server(0), id, e.Server(0).Sessions()[0].Ephemerals...) }
				if healed {
					lives()
					heal() // its client may end it now
				} else {
					time.Sleep(5 * time.Second)
					lives()
				}
				tb.finish()
				require.Empty(t, tb.errors, name)
			})
		}
	}
}

func TestASessionThatItsClientCouldNotEndIsLeftOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		s := srv.Session(tb)
		srv.Partition(s.ID())
		s.Close() // by the test itself
		tb.finish()
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], "session 0x1dc6acfac000001: connected")
	})
}

func TestARuleThatIsSpentIsNoFaultAtWork(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		rule   *zktest.Rule
		atWork bool
	}{
		"Nth, met":              {zktest.On(zktest.Create, "**").Nth(1).DelayReply(time.Millisecond), false},
		"Times, met":            {zktest.On(zktest.Create, "**").Times(1).DelayReply(time.Millisecond), false},
		"Nth and Times, met":    {zktest.On(zktest.Create, "**").Nth(1).Times(1), false},
		"Nth, not yet met":      {zktest.On(zktest.Create, "**").Nth(2).LoseReply().Maybe(), true},
		"Nth and Times, midway": {zktest.On(zktest.Create, "**").Nth(1).Times(2).DelayReply(time.Millisecond), true},
		"no end":                {zktest.On(zktest.Create, "**").DelayReply(time.Millisecond), true},
		"Nth, met, and holds":   {zktest.On(zktest.Exists, "**").Nth(1).Hold(), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			tb := &fakeTB{TB: t}
			srv := zktest.Run(tb)
			conn := srv.Connect(t, 10*time.Second) // closed after tb's server has looked
			srv.Intercept(c.rule)
			mustCreate(t, conn, "/n", 0)
			go func() { _, _, _ = conn.Exists("/n") }()
			synctest.Wait()
			tb.finish()
			require.Len(t, tb.errors, 1)
			require.Equal(t, c.atWork, strings.Contains(tb.errors[0], "requests are intercepted (1)"), text)
		})
	}
}
