package election_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// elections opens n sessions with a candidate each.
func elections(v *proving.Env, n int) []*zkelection.Election {
	v.T.Helper()
	all := make([]*zkelection.Election, n)
	for i := range all {
		all[i] = candidate(v, v.Session(), i)
	}
	return all
}

func candidate(v *proving.Env, s *zksync.Session, i int) *zkelection.Election {
	return zkelection.New(s, proving.ElectionPath, zkelection.Candidate{ID: fmt.Sprintf("c%d", i), Data: []byte{byte(i), 0xff}})
}

func leads(v *proving.Env, e *zkelection.Election, id string) {
	v.T.Helper()
	v.Flush()
	c, err := e.Leader(context.Background())
	require.NoError(v.T, err)
	require.Equal(v.T, id, c.ID)
}

func TestAcceptance103ExactlyOneLeadsAndThenTheOldestOther(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 4)
		first := v.Get(es[0].Campaign)
		var queue []*proving.Attempt
		for i, e := range es[1:] {
			queue = append(queue, proving.Call(context.Background(), e.Campaign))
			v.Settled(proving.ElectionPath, i+2)
		}
		leads(v, es[3], "c0")
		token := first.Token()
		require.NoError(t, first.Unlock())
		for i, a := range queue {
			l := v.Granted(a)
			leads(v, es[0], fmt.Sprintf("c%d", i+1))
			require.Positive(t, l.Token().Compare(token))
			token = l.Token()
			for _, later := range queue[i+1:] {
				require.True(t, later.Pending())
			}
			require.NoError(t, l.Unlock())
		}
		v.Flush()
		_, err := es[0].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
	})
}

func TestAcceptance104And107TheLeadersOwnIdAndDataAreRead(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 2)
		_, err := es[1].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
		none, err := es[1].Candidates(context.Background())
		require.NoError(t, err)
		require.Empty(t, none)
		l := v.Get(es[0].Campaign)
		second := proving.Call(context.Background(), es[1].Campaign)
		v.Settled(proving.ElectionPath, 2)
		c, err := es[1].Leader(context.Background())
		require.NoError(t, err)
		require.Equal(t, "c0", c.ID)
		require.Equal(t, []byte{0, 0xff}, c.Data)
		require.Equal(t, l.Token(), c.Token)
		require.Equal(t, l.Node(), c.Node)
		list, err := es[0].Candidates(context.Background())
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Equal(t, []byte{1, 0xff}, list[1].Data)
		_, err = es[0].TryCampaign(context.Background())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(second).Unlock())
	})
}

func TestAcceptance105ExpiryAndALongPartitionAreToldAsDefeat(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		e := candidate(v, s, 0)
		l := v.Get(e.Campaign)
		v.Server.Expire(s.ID())
		v.Awaits(l.Done(), "the defeat")
		require.ErrorIs(t, context.Cause(l.Context()), zksync.ErrLost)
		l = v.Get(e.Campaign)
		other := proving.Call(context.Background(), elections(v, 1)[0].Campaign)
		v.Settled(proving.ElectionPath, 2)
		heal := v.Server.Partition(s.ID())
		<-l.Done()
		require.True(t, other.Pending(), "told before the next one leads")
		next := v.Granted(other)
		heal()
		require.NoError(t, next.Unlock())
	})
}

func TestAcceptance106WhoResignedLeadsAgainOnlyIfHeCampaigns(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 1)
		require.NoError(t, v.Get(es[0].Campaign).Unlock())
		v.Queued(proving.ElectionPath, 0)
		_, err := es[0].Leader(context.Background())
		require.ErrorIs(t, err, zksync.ErrNoLeader)
		require.NoError(t, v.Get(es[0].Campaign).Unlock())
	})
}

func TestAcceptance115LeadingAloneIsOneRequestAndAHandoverNone(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.ElectionPath, "")
		a, b := candidate(v, proving.Calm(v), 0), candidate(v, proving.Calm(v), 1)
		var l *zksync.Lease
		v.Costs(2, func() { l = v.Get(a.Campaign) }, "the first look at the path, and the entry")
		next := proving.Call(context.Background(), b.Campaign)
		v.Settled(proving.ElectionPath, 2)
		v.Costs(1, func() { // the removal of the node
			require.NoError(t, l.Unlock())
			l = v.Granted(next)
		})
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance127TheLeadersFunctionEndsWithItsLeadershipAndNoTwoRunTogether(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(context.Background())
		var leading atomic.Pointer[zksync.Lease]
		var led, lost atomic.Int32
		var all sync.WaitGroup
		sessions := make([]*zksync.Session, 3)
		for i := range sessions {
			sessions[i] = v.Session()
			e := candidate(v, sessions[i], i)
			all.Go(func() {
				err := e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
					led.Add(1)
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
			cut := v.Server.Partition
			if i%2 == 0 {
				cut = v.Server.DropRequests
			}
			heal := cut(id)
			time.Sleep(30 * time.Second)
			heal()
		}
		time.Sleep(time.Minute)
		stop()
		all.Wait()
		require.Greater(t, lost.Load(), int32(1))
		require.Equal(t, lost.Load()+1, led.Load(), "it campaigns again after each loss, and the last one was stopped")
		v.Queued(proving.ElectionPath, 0)
	})
}

func TestAcceptance128AFunctionDoesNotStartWhileNobodyCanConfirmTheLeadership(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		leader := v.Get(elections(v, 1)[0].Campaign)
		s := v.Session()
		ctx, stop := context.WithCancel(context.Background())
		var started atomic.Int32
		ended := make(chan error, 1)
		go func() {
			ended <- candidate(v, s, 1).Run(ctx, func(ctx context.Context, _ *zksync.Lease) error {
				started.Add(1)
				<-ctx.Done()
				return nil
			})
		}()
		v.Settled(proving.ElectionPath, 2)
		// It hears that it leads now, and that is the last it hears.
		requests := v.Server.DropRequests(s.ID())
		require.NoError(t, leader.Unlock())
		v.Quiet()
		replies := v.Server.DropReplies(s.ID())
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
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 3)
		first := v.Get(es[0].Campaign)
		ctx, cancel := context.WithCancel(context.Background())
		middle := proving.Call(ctx, es[1].Campaign)
		v.Settled(proving.ElectionPath, 2)
		last := proving.Call(context.Background(), es[2].Campaign)
		v.Settled(proving.ElectionPath, 3)
		cancel()
		require.ErrorIs(t, v.Failed(middle), context.Canceled)
		v.Settled(proving.ElectionPath, 2)
		require.True(t, last.Pending())
		leads(v, es[1], "c0")
		require.NoError(t, first.Unlock())
		require.NoError(t, v.Granted(last).Unlock())
	})
}

func TestAcceptance130AfterTheServerWasReplacedByAnEmptyOneOneLeads(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var leading atomic.Int32
		for _, e := range elections(v, 3) {
			all.Go(func() {
				_ = e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
					leading.Add(1)
					defer leading.Add(-1)
					<-ctx.Done()
					return nil
				})
			})
		}
		v.Settled(proving.ElectionPath, 3)
		v.Server.RestartEmpty()
		time.Sleep(time.Minute)
		v.Settled(proving.ElectionPath, 3)
		require.EqualValues(t, 1, leading.Load())
		stop()
		all.Wait()
	})
}

// The server freezes just when Run has been granted and asks for the confirmation.
func TestAcceptance113RunKeepsItsDeadlineWhileItAwaitsTheConfirmation(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		e := candidate(v, v.Session(), 0)
		hold := v.Server.Intercept(zktest.On(zktest.Check, proving.ElectionPath+"/*").Times(1).Delay(5 * time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := e.Run(ctx, func(context.Context, *zksync.Lease) error { return nil })
		require.Equal(t, 1, hold.Fired())
		require.LessOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		v.Later()
	})
}
