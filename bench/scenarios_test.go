package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// costs are the least and most requests of an operation by scenario and peer, with four clients. They are equal where
// chance does not decide who meets whom, and a new path costs nothing. A lock looks at a new path once in each session: one more at most, since
// a slice may end after one operation. If all four first entries meet, three are refused, since the base node has changed since
// their look: these clients look again and enter again, some ten requests each.
var costs = map[string]map[string][2]float64{
	Uncontended:   {"menagerie": {2, 3}, "gozk-lock": {3, 3}, "floor": {2, 2}},
	Async:         {"menagerie": {2, 3}, "gozk-lock": {3, 3}, "floor": {2, 2}},
	Contended:     {"menagerie": {2, 8}, "gozk-lock": {3, 5}, "floor": {2, 3}},
	Deep:          {"menagerie": {4, 7}, "gozk-lock": {5, 6}, "floor": {3, 3}},
	Crowd:         {"menagerie": {4, 11}, "gozk-lock": {5, 8}, "floor": {3, 4}},
	Fleet:         {"menagerie": {4, 11}, "gozk-lock": {5, 8}, "floor": {3, 4}},
	Many:          {"menagerie": {2, 2}, "gozk-lock": {3, 3}, "floor": {2, 2}},
	Queue:         {"menagerie": {3, 25}}, // a slice may end after two elements, of which each pays for a part of the queue's start
	Counter:       {"menagerie": {1, 15}}, // the same, and clients that meet queue
	RWMutex:       {"menagerie": {2, 3}},
	Readers:       {"menagerie": {2, 7}},
	Semaphore:     {"menagerie": {2, 10}},
	Election:      {"menagerie": {1, 8}},
	Local:         {"menagerie": {0, 3}, "gozk-lock": {3, 5}},
	Relock:        {"menagerie": {0, 5}, "gozk-lock": {3, 3}}, // a slice takes no more, see lingering, and may end after one operation
	SharedReaders: {"menagerie": {0, 1}},
	Barrier:       {"menagerie": {12, 12}},
	DoubleBarrier: {"menagerie": {16, 16}},
	Gate:          {"menagerie": {11, 11}},
	Latch:         {"menagerie": {12, 60}},
	Phaser:        {"menagerie": {8, 13}},
	WaitGroup:     {"menagerie": {8, 60}},
	Once:          {"menagerie": {6, 60}},
	Flight:        {"menagerie": {5, 40}},
}

func TestEveryScenarioRunsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	require.Len(t, costs, len(Scenarios))
	for _, s := range Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			srv, addr, _ := serve(t)
			n := min(s.Clients[len(s.Clients)-1], 4)
			cfg := config(addr, 15*time.Millisecond, s.With([]int{n}))
			if s.Name == Relock {
				cfg.Peers[0] = lingering{cfg.Peers[0], t}
			}
			rows, err := runWith(t, context.Background(), cfg)
			require.NoError(t, err)
			require.Len(t, rows, len(costs[s.Name]))
			for _, r := range rows {
				t.Log(r.Peer, *r.RequestsPerOp)
				require.Equal(t, n, r.Clients)
				require.Positive(t, r.OpsPerS)
				require.Positive(t, r.P50)
				cost := costs[s.Name][r.Peer]
				require.GreaterOrEqual(t, *r.RequestsPerOp, cost[0], r.Peer)
				require.LessOrEqual(t, *r.RequestsPerOp, cost[1]+0.3, r.Peer) // who does not run for half a second asks once more
				require.Equal(t, s.Drains, r.Deep != nil)
			}
			left := srv.Children("/")
			require.Equal(t, []string{"zookeeper"}, left)
			require.Empty(t, srv.Sessions())
		})
	}
}

// lingering checks a peer whose place lingers: however many operations a slice has, it takes the first look at the path, an entry, a
// listing that watches who comes, the end of that watch, and a departure. A client that does not run for half a second asks once more.
type lingering struct {
	Peer
	t *testing.T
}

func (l lingering) Run(ctx context.Context, s Slice) (Sample, error) {
	began := time.Now()
	x, err := l.Peer.Run(ctx, s)
	require.NoError(l.t, err)
	require.LessOrEqual(l.t, x.Requests, 5+int64(time.Since(began)/(500*time.Millisecond)), "%d operations", x.Ops)
	return x, err
}

// never is a peer that fails in one scenario.
type never struct {
	Peer
	scenario string
}

func (n never) Run(ctx context.Context, s Slice) (Sample, error) {
	if s.Scenario.Name == n.scenario {
		return Sample{}, errors.New("out of order")
	}
	return n.Peer.Run(ctx, s)
}

func TestAPeerThatFailsLeavesTheFieldToTheOthers(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Uncontended, 1), of(t, Contended, 2))
	cfg.Peers[1] = never{cfg.Peers[1], Uncontended}
	rows, err := runWith(t, context.Background(), cfg)
	require.NoError(t, err)
	require.Len(t, rows, 6)
	for i, r := range rows {
		if i == 1 {
			require.Equal(t, "out of order", r.Error)
			require.Zero(t, r.Rounds)
			continue
		}
		require.Empty(t, r.Error)
		require.Equal(t, 3, r.Rounds)
	}
	left := srv.Children("/")
	require.Equal(t, []string{"zookeeper"}, left)
}

func TestARunEndsWhenAllPeersFail(t *testing.T) {
	t.Parallel()
	_, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Uncontended, 1), of(t, Contended, 2))
	for i, p := range cfg.Peers {
		cfg.Peers[i] = never{p, Contended}
	}
	rows, err := runWith(t, context.Background(), cfg)
	require.ErrorContains(t, err, "floor, contended with 2 clients: out of order")
	require.Len(t, rows, 3, "those of the first scenario")
}

func TestProgressIsToldBeforeEachSlice(t *testing.T) {
	t.Parallel()
	_, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Uncontended, 1), of(t, Contended, 2, 3))
	var all []Progress
	cfg.Progress = func(p Progress) { all = append(all, p) }
	_, err := runWith(t, context.Background(), cfg)
	require.NoError(t, err)
	require.Len(t, all, 3*3*(1+3), "measurements, peers, the warm-up and three rounds")
	for i, p := range all {
		require.Equal(t, i/12, p.Done)
		require.Equal(t, 3, p.Total)
		require.Equal(t, i%12/3, p.Round)
		require.Equal(t, []int{1, 2, 3}[i/12], p.Clients)
		require.Equal(t, cfg.Peers[(i+max(p.Round-1, 0))%3].Name(), p.Peer, "who begins moves on")
		require.Equal(t, i < 3, p.Left == 0)
	}
}

// timed is a peer that only notes how long its slices are.
type timed struct {
	Peer
	slices *[]time.Duration
}

func (p timed) Run(_ context.Context, s Slice) (Sample, error) {
	*p.slices = append(*p.slices, s.Duration)
	return Sample{Ops: 1, Elapsed: time.Second}, nil
}

func TestAPeerWarmsUpInItsFirstScenario(t *testing.T) {
	t.Parallel()
	_, addr, _ := serve(t)
	for warmUp, first := range map[time.Duration]time.Duration{0: 5, 2: 5, 2000: 2000} {
		cfg := config(addr, 15*time.Millisecond, of(t, Deep, 2), of(t, Uncontended, 1), of(t, Contended, 2))
		cfg.WarmUp = warmUp * time.Millisecond
		var all []time.Duration
		cfg.Peers = []Peer{timed{menagerie, &all}}
		_, err := runWith(t, context.Background(), cfg)
		require.NoError(t, err)
		for i := range all {
			all[i] /= time.Millisecond
		}
		require.Equal(t, []time.Duration{0, 0, 0, 0, first, 5, 5, 5, 5, 5, 5, 5}, all, "a queue drains, however long it takes")
	}
}

func TestWhatWasMeasuredBeforeAnInterruptionIsReturned(t *testing.T) {
	t.Parallel()
	_, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Uncontended, 1), of(t, Contended, 2))
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cfg.Progress = func(p Progress) {
		if p.Done == 1 && p.Round == 3 {
			cancel(cause)
		}
	}
	rows, err := runWith(t, ctx, cfg)
	require.ErrorIs(t, err, cause)
	require.Len(t, rows, 6)
	for i, r := range rows {
		require.Equal(t, []int{3, 2}[i/3], r.Rounds)
	}
}

func TestLongRoundsAreShortSlices(t *testing.T) {
	r := &runner{Config: Config{Duration: 15 * time.Second, Rounds: 5}}
	turns, length := r.turns(of(t, Uncontended, 1))
	require.Equal(t, 6, turns)
	require.Equal(t, sliceLength, length)
	r.Duration = 300 * time.Millisecond
	turns, length = r.turns(of(t, Uncontended, 1))
	require.Equal(t, 1, turns)
	require.Equal(t, 60*time.Millisecond, length)
}

func TestASliceIsCleanedUpBeforeTheNext(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Latch, 2))
	looked := 0
	cfg.Progress = func(Progress) {
		top := srv.Children("/")
		for _, name := range top {
			if name != "zookeeper" {
				left := srv.Children("/" + name)
				require.Empty(t, left)
				looked++
			}
		}
	}
	_, err := runWith(t, context.Background(), cfg)
	require.NoError(t, err)
	require.Equal(t, 4, looked, "before the warm-up and three rounds")
}

func TestTheClockIsReadForSomeLocalOperationsOnly(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	s, err := menagerie.Run(context.Background(), slice(t, srv, addr, of(t, Relock, 1)))
	require.NoError(t, err)
	require.Len(t, s.Latencies, (s.Ops+clockEvery-1)/clockEvery)
}

func TestWhatAWaiterAsksBeforeTheHolderReleasesIsQueueing(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	s, err := goZKLock.Run(context.Background(), slice(t, srv, addr, of(t, Deep, 20)))
	require.NoError(t, err)
	require.Equal(t, 20, s.Ops)
	require.Len(t, s.Latencies, 20)
	require.EqualValues(t, 20*3, s.Queueing.Requests, "each creates, lists and watches")
	require.EqualValues(t, 20*2+1, s.Requests-s.Queueing.Requests, "each lists and deletes; the holder deletes")
	require.Positive(t, s.QueueingElapsed)
	require.Greater(t, s.Queueing.BytesIn, int64(20*20*30/2), "listings")
}
