package ensemble_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	// cutsEnv is how many rounds are played, of all timeouts: "make leader-cuts" sets it.
	cutsEnv = "MENAGERIE_LEADER_CUTS"

	cutTick = 2 * time.Second

	// promised is the least session timeout for which a holder is told before the next grant: five ticks.
	promised = 5 * cutTick
)

// The leader is cut off from both followers, and holders and their heartbeats are with the leader. It answers them until it steps
// down, and the others elect another leader and grant the locks.
func TestALeaseEndsBeforeTheNextGrantWhenARealLeaderIsCutOff(t *testing.T) {
	t.Parallel()
	if err := ensemble.CanCut(); errors.Is(err, ensemble.ErrNoNetwork) {
		t.Skip(err) // the machine's to decide, and the chaos test says so, too
	}
	require.NoError(t, ensemble.CanCut())
	rounds, timeouts := 1, []time.Duration{15 * time.Second}
	if text := os.Getenv(cutsEnv); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err, cutsEnv)
		timeouts = []time.Duration{4 * time.Second, 10 * time.Second, 15 * time.Second}
	}
	e := ensemble.ForTestConfig(t, ensemble.Config{Servers: 3, Tick: cutTick, SyncLimit: 5, Networks: true})
	least, most := map[time.Duration]time.Duration{}, map[time.Duration]time.Duration{}
	for round := range rounds {
		for timeout, margin := range cutRound(t, e, timeouts, cutTick*time.Duration(round)/time.Duration(rounds)) {
			if timeout >= promised {
				require.Positive(t, margin, "round %d, timeout %v", round+1, timeout)
			}
			if old, ok := least[timeout]; !ok || margin < old {
				least[timeout] = margin
			}
			most[timeout] = max(most[timeout], margin)
		}
	}
	for _, timeout := range timeouts {
		t.Logf("timeout %v: the lease ended %.1f to %.1f s before the next grant, in %d rounds", timeout, least[timeout].Seconds(), most[timeout].Seconds(), rounds)
	}
}

// cutRound cuts the leader off while it holds for a session of each timeout, at a later instant of the tick by
// phase. It returns how long before the next grant each lease ended.
func cutRound(t *testing.T, e *ensemble.Ensemble, timeouts []time.Duration, phase time.Duration) map[time.Duration]time.Duration {
	t.Helper()
	leader, followers := roles(t, e)
	var holds []*cutHold
	for _, timeout := range timeouts {
		holds = append(holds, holdAt(t, e, leader, followers, timeout))
	}
	time.Sleep(2*cutTick + phase) // heartbeats are under way
	begin := time.Now()
	both := func(do func(from, to *ensemble.Server) error) {
		for _, f := range followers {
			require.NoError(t, errors.Join(do(leader, f), do(f, leader)))
		}
	}
	both(e.Cut)
	margins := map[time.Duration]time.Duration{}
	for _, h := range holds {
		granted := h.granted(t)
		margins[h.timeout] = granted.Sub(<-h.lost)
		t.Logf("timeout %v: granted %v after the cut, the lease ended %v before", h.timeout,
			granted.Sub(begin).Round(time.Millisecond), margins[h.timeout].Round(time.Millisecond))
	}
	both(e.Heal)
	// It would come back by itself; a new start is quicker.
	require.NoError(t, leader.Kill())
	require.NoError(t, leader.Start(t.Context()))
	for _, h := range holds {
		require.NoError(t, errors.Join(h.holder.Close(), h.waiter.Close()))
	}
	return margins
}

func roles(t *testing.T, e *ensemble.Ensemble) (leader *ensemble.Server, followers []*ensemble.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	leader, err := e.Leader(ctx)
	require.NoError(t, err)
	for _, s := range e.Servers() {
		if s != leader {
			followers = append(followers, s)
		}
	}
	return leader, followers
}

// cutHold is a lock that a session at the leader holds, and one at the followers waits for.
type cutHold struct {
	timeout        time.Duration
	holder, waiter *zksync.Session
	lease          *zksync.Lease
	lost           chan time.Time
	next           chan time.Time
}

func holdAt(t *testing.T, e *ensemble.Ensemble, leader *ensemble.Server, followers []*ensemble.Server, timeout time.Duration) *cutHold {
	t.Helper()
	connect := func(servers ...*ensemble.Server) *zksync.Session {
		var addrs []string
		for _, s := range servers {
			addrs = append(addrs, s.Addr())
		}
		s, err := zksync.Connect(t.Context(), strings.Join(addrs, ","), zksync.WithTimeout(timeout), zksync.WithDialer(e.DialContext))
		require.NoError(t, err)
		require.Equal(t, timeout, s.Timeout())
		return s
	}
	h := &cutHold{timeout: timeout, holder: connect(leader), waiter: connect(followers...),
		lost: make(chan time.Time, 1), next: make(chan time.Time, 1)}
	path := fmt.Sprintf("/locks/%v", timeout)
	var err error
	h.lease, err = zksync.NewMutex(h.holder, path).LockContext(t.Context())
	require.NoError(t, err)
	var waits sync.WaitGroup
	waits.Go(func() { <-h.lease.Done(); h.lost <- time.Now() })
	waits.Go(func() {
		if l, err := zksync.NewMutex(h.waiter, path).LockContext(t.Context()); err == nil {
			h.next <- time.Now()
			_ = l.Unlock()
		}
	})
	t.Cleanup(waits.Wait)
	return h
}

// granted is when the waiter had its lease.
func (h *cutHold) granted(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-h.next:
		return at
	case <-time.After(2 * time.Minute):
		require.Fail(t, "nobody is granted", "timeout %v", h.timeout)
		return time.Time{}
	}
}
