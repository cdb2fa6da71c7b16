package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

const electionPath = "/election"

// elections opens n sessions with a candidate each.
func (v *env) elections(n int) []*zkelection.Election {
	v.t.Helper()
	all := make([]*zkelection.Election, n)
	for i := range all {
		all[i] = v.candidate(v.session(), i)
	}
	return all
}

func (v *env) candidate(s *zksync.Session, i int) *zkelection.Election {
	return zkelection.New(s, electionPath, zkelection.Candidate{ID: fmt.Sprintf("c%d", i), Data: []byte{byte(i), 0xff}})
}

func (v *env) leads(e *zkelection.Election, id string) {
	v.t.Helper()
	v.flush()
	c, err := e.Leader(context.Background())
	require.NoError(v.t, err)
	require.Equal(v.t, id, c.ID)
}

func TestAcceptance103ExactlyOneLeadsAndThenTheOldestOther(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		es := v.elections(4)
		first := v.get(es[0].Campaign)
		var queue []*attempt
		for i, e := range es[1:] {
			queue = append(queue, call(context.Background(), e.Campaign))
			v.settled(electionPath, i+2)
		}
		v.leads(es[3], "c0")
		token := first.Token()
		require.NoError(t, first.Unlock())
		for i, a := range queue {
			l := v.granted(a)
			v.leads(es[0], fmt.Sprintf("c%d", i+1))
			require.Positive(t, l.Token().Compare(token))
			token = l.Token()
			for _, later := range queue[i+1:] {
				require.True(t, later.pending())
			}
			require.NoError(t, l.Unlock())
		}
		v.flush()
		_, err := es[0].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
	})
}

func TestAcceptance104And107TheLeadersOwnIdAndDataAreRead(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		es := v.elections(2)
		_, err := es[1].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
		none, err := es[1].Candidates(context.Background())
		require.NoError(t, err)
		require.Empty(t, none)
		l := v.get(es[0].Campaign)
		second := call(context.Background(), es[1].Campaign)
		v.settled(electionPath, 2)
		c, err := es[1].Leader(context.Background())
		require.NoError(t, err)
		require.Equal(t, "c0", c.ID)
		require.Equal(t, []byte{0, 0xff}, c.Data)
		require.Equal(t, l.Token(), c.Token)
		require.Equal(t, l.Path(), c.Node)
		list, err := es[0].Candidates(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, []byte{1, 0xff}, list[1].Data)
		_, err = es[0].TryCampaign(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, l.Unlock())
		require.NoError(t, v.granted(second).Unlock())
	})
}

func TestAcceptance105ExpiryAndALongPartitionAreToldAsDefeat(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s := v.session()
		e := v.candidate(s, 0)
		l := v.get(e.Campaign)
		v.srv.Expire(s.ID())
		v.awaits(l.Done(), "the defeat")
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrLost)
		l = v.get(e.Campaign)
		other := call(context.Background(), v.elections(1)[0].Campaign)
		v.settled(electionPath, 2)
		heal := v.srv.Partition(s.ID())
		<-l.Done()
		require.True(t, other.pending(), "told before the next one leads")
		next := v.granted(other)
		heal()
		require.NoError(t, next.Unlock())
	})
}

func TestAcceptance106WhoResignedLeadsAgainOnlyIfHeCampaigns(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		es := v.elections(1)
		require.NoError(t, v.get(es[0].Campaign).Unlock())
		v.queued(electionPath, 0)
		_, err := es[0].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
		require.NoError(t, v.get(es[0].Campaign).Unlock())
	})
}

func TestAcceptance115LeadingAloneIsOneRequestAndAHandoverNone(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		v.put(electionPath, "")
		a, b := v.candidate(calm(v), 0), v.candidate(calm(v), 1)
		var l *zksync.Lease
		v.costs(1, func() { l = v.get(a.Campaign) })
		next := call(context.Background(), b.Campaign)
		v.settled(electionPath, 2)
		v.costs(1, func() { // the removal of the node
			require.NoError(t, l.Unlock())
			l = v.granted(next)
		})
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance127TheLeadersFunctionEndsWithItsLeadershipAndNoTwoRunTogether(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx, stop := context.WithCancel(context.Background())
		var leading atomic.Pointer[zksync.Lease]
		var terms, lost atomic.Int32
		var all sync.WaitGroup
		sessions := make([]*zksync.Session, 3)
		for i := range sessions {
			sessions[i] = v.session()
			e := v.candidate(sessions[i], i)
			all.Go(func() {
				err := e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
					terms.Add(1)
					if old := leading.Swap(l); old != nil {
						require.False(t, old.Valid(), "two lead at once")
					}
					<-ctx.Done()
					if errors.Is(context.Cause(ctx), zksync.ErrLost) {
						lost.Add(1)
					}
					return ctx.Err()
				})
				require.ErrorIs(t, err, context.Canceled)
			})
		}
		for i := range 9 {
			time.Sleep(time.Minute)
			id := sessions[i%3].ID()
			cut := v.srv.Partition
			if i%2 == 0 {
				cut = v.srv.DropRequests
			}
			heal := cut(id)
			time.Sleep(30 * time.Second)
			heal()
		}
		time.Sleep(time.Minute)
		stop()
		all.Wait()
		require.Greater(t, lost.Load(), int32(1))
		require.Equal(t, lost.Load()+1, terms.Load(), "it campaigns again after each loss, and the last one was stopped")
		v.queued(electionPath, 0)
	})
}

func TestAcceptance128AFunctionDoesNotStartWhileNobodyCanConfirmTheLeadership(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		leader := v.get(v.elections(1)[0].Campaign)
		s := v.session()
		ctx, stop := context.WithCancel(context.Background())
		var started atomic.Int32
		ended := make(chan error, 1)
		go func() {
			ended <- v.candidate(s, 1).Run(ctx, func(ctx context.Context, _ *zksync.Lease) error {
				started.Add(1)
				<-ctx.Done()
				return nil
			})
		}()
		v.settled(electionPath, 2)
		// It hears that it leads now, and that is the last it hears.
		requests := v.srv.DropRequests(s.ID())
		require.NoError(t, leader.Unlock())
		v.quiet()
		replies := v.srv.DropReplies(s.ID())
		time.Sleep(s.Timeout() - time.Second)
		require.Zero(t, started.Load())
		requests()
		replies()
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, started.Load(), "in the next session")
		stop()
		<-ended
	})
}

func TestAcceptance129ACandidateInTheMiddleWhoLeavesPromotesNobody(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		es := v.elections(3)
		first := v.get(es[0].Campaign)
		ctx, cancel := context.WithCancel(context.Background())
		middle := call(ctx, es[1].Campaign)
		v.settled(electionPath, 2)
		last := call(context.Background(), es[2].Campaign)
		v.settled(electionPath, 3)
		cancel()
		require.ErrorIs(t, v.failed(middle), context.Canceled)
		v.settled(electionPath, 2)
		require.True(t, last.pending())
		v.leads(es[1], "c0")
		require.NoError(t, first.Unlock())
		require.NoError(t, v.granted(last).Unlock())
	})
}

func TestAcceptance130AfterTheServerWasReplacedByAnEmptyOneOneLeads(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var leading atomic.Int32
		for _, e := range v.elections(3) {
			all.Go(func() {
				_ = e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
					leading.Add(1)
					defer leading.Add(-1)
					<-ctx.Done()
					return nil
				})
			})
		}
		v.settled(electionPath, 3)
		v.srv.RestartEmpty()
		time.Sleep(time.Minute)
		v.settled(electionPath, 3)
		require.EqualValues(t, 1, leading.Load())
		stop()
		all.Wait()
	})
}

func TestAnObserverSeesEveryLeaderInOrder(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		es := v.elections(3)
		watcher := v.session()
		seen := make(chan string, 100)
		ctx, stop := context.WithCancel(context.Background())
		var end error
		var watching sync.WaitGroup
		watching.Go(func() {
			for c, err := range v.candidate(watcher, 9).Observe(ctx) {
				switch {
				case errors.Is(err, zksync.ErrNoLeader):
					seen <- "nobody"
				case err != nil:
					end = err
				default:
					seen <- c.ID
				}
			}
		})
		told := func(want ...string) {
			t.Helper()
			v.quiet()
			var got []string
			for len(seen) > 0 {
				got = append(got, <-seen)
			}
			require.Equal(t, want, got)
		}
		told("nobody")
		l := v.get(es[0].Campaign)
		told("c0")
		next := call(context.Background(), es[1].Campaign)
		v.settled(electionPath, 2)
		told()
		v.srv.Disconnect(watcher.ID())
		told()
		require.NoError(t, l.Unlock())
		l = v.granted(next)
		time.Sleep(time.Second)
		told("c1")
		v.srv.Expire(watcher.ID())
		time.Sleep(time.Second)
		told()
		require.NoError(t, l.Unlock())
		told("nobody")
		stop()
		watching.Wait()
		require.ErrorIs(t, end, context.Canceled)
	})
}

// What else lies in the directory is no leader, and hides none.
func TestAnObserverIsNotMisledByForeignChildren(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		v.put(electionPath+"/README", "hands off")
		e := v.elections(1)[0]
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		seen := make(chan string, 10)
		var watching sync.WaitGroup
		watching.Go(func() {
			for c, err := range e.Observe(ctx) {
				if errors.Is(err, zksync.ErrNoLeader) {
					seen <- "nobody"
				} else if err == nil {
					seen <- c.ID
				}
			}
		})
		require.Equal(t, "nobody", <-seen)
		l := v.get(e.Campaign)
		require.Equal(t, "c0", <-seen)
		for c, err := range e.Observe(ctx) {
			require.NoError(t, err)
			require.Equal(t, "c0", c.ID)
			break // one look is enough
		}
		require.NoError(t, l.Unlock())
		require.Equal(t, "nobody", <-seen)
		stop()
		watching.Wait()
	})
}

// The paths that an observer watches are on the servers, those that it tells are the session's.
func TestAnObserverBelowAChrootSeesTheLeader(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		s, err := zksync.Connect(t.Context(), "zk:2181/app", zksync.WithDialer(v.srv.DialContext))
		require.NoError(t, err)
		defer s.Close()
		e := zkelection.New(s, electionPath, zkelection.Candidate{ID: "c0"})
		l := v.get(e.Campaign)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for c, err := range e.Observe(ctx) {
			require.NoError(t, err)
			require.Equal(t, "c0", c.ID)
			require.Equal(t, l.Path(), c.Node)
			break
		}
		require.NoError(t, l.Unlock())
	})
}
