package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

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
		srv.Intercept(zktest.On(zktest.Any, "**").Hold()).Remove()
		tb.finish()
		require.Len(t, tb.errors, 1)
		require.NotContains(t, tb.errors[0], "faults")
	})
}
