package zktest_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// What TestElsewhere does: in a process of its own, which is to fail.
const elsewhereEnv = "ZKTEST_ELSEWHERE"

func TestElsewhere(t *testing.T) {
	how := os.Getenv(elsewhereEnv)
	if how == "" {
		return
	}
	srv := zktest.Run(t)
	synctest.Test(t, func(t *testing.T) {
		switch how {
		case "refuses":
			srv.Refuse()
			fallthrough
		case "zksync":
			_, err := zksync.Connect(t.Context(), "127.0.0.1:2181", zksync.WithDialer(srv.DialContext))
			t.Log(err)
		case "go-zookeeper":
			_, events, err := zk.Connect([]string{"127.0.0.1:2181"}, time.Second, zk.WithDialer(srv.Dial), zk.WithLogInfo(false))
			require.NoError(t, err)
			for e := range events {
				t.Log(e)
			}
		}
	})
}

func TestDiallingAServerFromOutsideTheBubbleEndsTheProcessWithTheFix(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"zksync", "refuses", "go-zookeeper"} {
		out := failing(t, "TestElsewhere", elsewhereEnv+"="+how)
		require.Contains(t, out, "panic: zktest: the server of TestElsewhere was made outside of the synctest bubble that connects to it", how)
		require.Contains(t, out, "call Run inside synctest.Test, with the bubble's t", how)
		require.NotContains(t, out, "test timed out", how)
	}
}

func TestServingAnotherBubblePanicsAndNamesTheTestIfThereIsOne(t *testing.T) {
	t.Parallel()
	ours, nobodys := zktest.Run(t), zktest.Start()
	defer nobodys.Close()
	text := "zktest: the server%s was made outside of the synctest bubble that connects to it, or the other way round: " +
		"time would stand still; call Run inside synctest.Test, with the bubble's t"
	synctest.Test(t, func(t *testing.T) {
		require.PanicsWithValue(t, fmt.Sprintf(text, " of "+t.Name()), func() { _, _ = ours.Dial("", "", 0) })
		require.PanicsWithValue(t, fmt.Sprintf(text, ""), func() { _, _ = nobodys.Dial("", "", 0) })
		require.PanicsWithValue(t, fmt.Sprintf(text, ""), func() { nobodys.ServeConn(nil) })
		require.PanicsWithValue(t, fmt.Sprintf(text, ""), func() { _ = nobodys.Serve(nil) })
	})
}

func TestConnectingToAnEnsembleFromAnotherBubbleFailsAtOnce(t *testing.T) {
	t.Parallel()
	e := zktest.RunEnsemble(t, 3)
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		require.Panics(t, func() { e.Connect(tb, time.Second) })
		require.Panics(t, func() { e.Session(tb) })
		require.Len(t, tb.errors, 2)
		require.Contains(t, tb.errors[0], "call Run inside synctest.Test, with the bubble's t")
		require.Contains(t, tb.errors[1], "call Run inside synctest.Test, with the bubble's t")
	})
}
