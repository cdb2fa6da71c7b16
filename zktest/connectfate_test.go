package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// connectFates are all fates of a Connect, and when a client that meets each once has its session: at once, or after the
// second that it waits before it tries again.
var connectFates = map[string]struct {
	fate  func(*zktest.Rule) *zktest.Rule
	again time.Duration
}{
	"none":         {func(r *zktest.Rule) *zktest.Rule { return r }, 0},
	"duplicate":    {(*zktest.Rule).Duplicate, 0},
	"lose request": {(*zktest.Rule).LoseRequest, time.Second},
	"lose reply":   {(*zktest.Rule).LoseReply, time.Second},
	"error":        {func(r *zktest.Rule) *zktest.Rule { return r.Error(zktest.CodeSessionExpired) }, time.Second},
}

// connectTimings are all ways in which a fate can be put off, each by one second.
var connectTimings = map[string]struct {
	put   func(*zktest.Rule) *zktest.Rule
	after time.Duration
}{
	"now":             {func(r *zktest.Rule) *zktest.Rule { return r }, 0},
	"delayed":         {func(r *zktest.Rule) *zktest.Rule { return r.Delay(time.Second) }, time.Second},
	"delayed, queued": {func(r *zktest.Rule) *zktest.Rule { return r.Delay(time.Second).Queued() }, time.Second},
	"held":            {(*zktest.Rule).Hold, time.Second},
	"held, queued":    {func(r *zktest.Rule) *zktest.Rule { return r.Hold().Queued() }, time.Second},
	"reply delayed":   {func(r *zktest.Rule) *zktest.Rule { return r.DelayReply(time.Second) }, time.Second},
	"both delayed": {func(r *zktest.Rule) *zktest.Rule {
		return r.Delay(500 * time.Millisecond).DelayReply(500 * time.Millisecond)
	}, time.Second},
}

// eachConnectFate runs f for every fate at every time; the client must have its session after the given time.
func eachConnectFate(t *testing.T, f func(t *testing.T, rule *zktest.Rule, after time.Duration)) {
	for fate, how := range connectFates {
		for timing, when := range connectTimings {
			t.Run(fate+", "+timing, func(t *testing.T) {
				rule := when.put(how.fate(zktest.On(zktest.Connect, "**").Times(1)))
				after := when.after + how.again
				switch {
				case fate == "lose request" && timing == "reply delayed", fate == "lose reply" && timing == "reply delayed":
					after = how.again // there is no reply
				case fate == "lose request" && timing == "both delayed", fate == "lose reply" && timing == "both delayed":
					after = how.again + 500*time.Millisecond
				}
				synctest.Test(t, func(t *testing.T) { f(t, rule, after) })
			})
		}
	}
}

func TestAClientGetsItsSessionWhateverBecomesOfItsConnect(t *testing.T) {
	t.Parallel()
	eachConnectFate(t, func(t *testing.T, rule *zktest.Rule, after time.Duration) {
		srv := zktest.Run(t, zktest.WithLeftovers()) // a session whose reply was lost is nobody's
		in := srv.Intercept(rule)
		time.AfterFunc(time.Second, in.Release) // of a Hold
		start := time.Now()
		conn := srv.Connect(t, 10*time.Second)
		require.Equal(t, after, time.Since(start))
		require.Equal(t, 1, in.Fired())
		for _, q := range srv.Log() {
			require.NotEqual(t, "duplicate", q.Fate, "it happens once, and the log says so")
		}
		mustCreate(t, conn, "/n", 0)
	})
}

func TestAClientGetsItsSessionBackWhateverBecomesOfItsConnect(t *testing.T) {
	t.Parallel()
	eachConnectFate(t, func(t *testing.T, rule *zktest.Rule, after time.Duration) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		conn := srv.Connect(t, 10*time.Second)
		in := srv.Intercept(rule)
		time.AfterFunc(time.Second, in.Release) // of a Hold
		start := time.Now()
		srv.Disconnect(conn.SessionID())
		synctest.Wait()
		_, err := conn.Create("/n", nil, 0, open)
		for err != nil { // the client gives up what waits, whenever an attempt has failed
			require.Less(t, time.Since(start), 10*time.Second, err)
			_, err = conn.Create("/n", nil, 0, open)
		}
		require.Equal(t, after, time.Since(start))
	})
}

func TestTimePassesForAClientWhoseEveryConnectionIsLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, srv *zktest.Server, conn *zk.Conn) {
		_, _, _, err := conn.ExistsW("/n")
		require.NoError(t, err)
		in := srv.Intercept(zktest.On(zktest.SetWatches, "**").LoseReply())
		srv.Disconnect(conn.SessionID())
		time.Sleep(time.Second)
		require.Less(t, in.Fired(), 100)
		in.Remove()
		time.Sleep(2 * time.Second)
		mustCreate(t, conn, "/n", 0)
		require.Equal(t, 1, srv.Notifications())
	})
}
