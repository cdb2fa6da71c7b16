package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// me is an owner of this process, by its name.
func me(name string) zksync.Owner {
	host, _ := os.Hostname()
	return zksync.Owner{Host: host, PID: os.Getpid(), Name: name}
}

func people(names ...string) (all []zksync.Owner) {
	for _, n := range names {
		all = append(all, me(n))
	}
	return all
}

// shown is what an error says of some owners.
func shown(names ...string) string {
	var all []string
	for _, o := range people(names...) {
		all = append(all, o.String())
	}
	return strings.Join(all, ", ")
}

// named are barriers of n parties, each of its own session, called a, b, c and so on.
func named(v *proving.Env, n int, opts ...zksync.Option) (all []*zkbarrier.Barrier, sessions []*zksync.Session) {
	v.T.Helper()
	for i := range n {
		s := v.Session(zksync.WithName(string(rune('a' + i))))
		sessions = append(sessions, s)
		all = append(all, zkbarrier.NewBarrier(s, proving.BarrierPath, n, opts...))
	}
	return all, sessions
}

// inTurn has some parties arrive one after the other.
func inTurn(v *proving.Env, bs ...*zkbarrier.Barrier) (all []*awaiting) {
	v.T.Helper()
	for i, b := range bs {
		all = append(all, await(context.Background(), b))
		gathered(v, b, i+1)
	}
	return all
}

// untilReset ends the text of a barrier that stays broken.
const untilReset = "; it stays broken until a Reset, or menagerie reset PATH"

// brokenWith waits until the barrier is broken for all of them, and says why.
func brokenWith(v *proving.Env, want zkbarrier.BrokenError, text string, all ...*awaiting) {
	v.T.Helper()
	brokenFor(v, all...)
	for _, a := range all {
		var why *zkbarrier.BrokenError
		require.ErrorAs(v.T, a.err, &why)
		require.Equal(v.T, want, *why)
		if want.Why != zkbarrier.Reset {
			require.EqualError(v.T, a.err, "zkbarrier: await "+proving.BarrierPath+": the barrier is broken"+text+untilReset)
			continue
		}
		require.EqualError(v.T, a.err, "zkbarrier: await "+proving.BarrierPath+": the barrier is broken"+text)
	}
}

func TestAPartyThatGivesUpIsNamedAndSoAreThoseThatHadArrived(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := named(v, 4)
		others := inTurn(v, bs[:2]...)
		ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
		defer cancel()
		_, err := bs[2].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, zksync.ErrBroken)
		require.EqualError(t, err, "zkbarrier: await "+proving.BarrierPath+": context deadline exceeded: 3 of 4 have arrived: "+shown("a", "b", "c"))
		want := zkbarrier.BrokenError{Why: zkbarrier.GaveUp, By: people("c"), Parties: 4, Count: 3, Arrived: people("a", "b", "c")}
		text := ": " + shown("c") + " gave up; 3 of 4 had arrived: " + shown("a", "b", "c")
		brokenWith(v, want, text, others...)
		brokenWith(v, want, text, await(context.Background(), bs[3])) // one that comes later learns the same
	})
}

// The others are told at once, so without names if the servers do not list them at once.
func TestWhoHadArrivedIsUnknownIfTheServersAreSlowWhenAPartyGivesUp(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := named(v, 3)
		others := inTurn(v, bs[:1]...)
		ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
		defer cancel()
		time.AfterFunc(2*time.Second, func() { v.Server.Delay(sessions[1].ID(), 0, 100*time.Millisecond) })
		_, err := bs[1].Await(ctx)
		require.EqualError(t, err, "zkbarrier: await "+proving.BarrierPath+": context deadline exceeded")
		brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.GaveUp, By: people("b"), Parties: 3}, ": "+shown("b")+" gave up", others...)
	})
}

func TestAPartyThatDiesWhileItWaitsIsNamed(t *testing.T) {
	for dead := range 3 {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				bs, sessions := named(v, 4)
				all := inTurn(v, bs[:3]...)
				time.Sleep(3 * time.Second) // each watches another one
				v.Expire(sessions[dead])
				name := string(rune('a' + dead))
				left := strings.ReplaceAll("abc", name, "")
				others := append(all[:dead:dead], all[dead+1:]...)
				brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.Died, By: people(name), Parties: 4, Count: 2, Arrived: people(strings.Split(left, "")...)},
					": "+shown(name)+" died; 2 of 4 had arrived: "+shown(strings.Split(left, "")...), others...)
				var why *zkbarrier.BrokenError
				v.Awaits(all[dead].done, "Await to return")
				require.ErrorAs(t, all[dead].err, &why)
				require.Equal(t, people(name), why.By, "the one whose session has ended")
			})
		})
	}
}

// The next to arrive sees the gap before the others have looked at each other.
func TestADeathThatIsNoticedBeforeAnyLookHasNoName(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := named(v, 4)
		all := inTurn(v, bs[:2]...)
		v.Expire(sessions[0])
		last := await(context.Background(), bs[2])
		brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.Died, Parties: 4, Count: 2, Arrived: people("b", "c")},
			": a party died; 2 of 4 had arrived: "+shown("b", "c"), all[1], last)
	})
}

func TestAResetNamesItsCaller(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := named(v, 3)
		all := inTurn(v, bs[:2]...)
		require.NoError(t, bs[2].Reset(context.Background()))
		brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.Reset, By: people("c"), Parties: 3, Count: 2, Arrived: people("a", "b")},
			": "+shown("c")+" reset the barrier; 2 of 3 had arrived: "+shown("a", "b"), all...)
	})
}

func TestAPartyThatGivesUpLearnsWhoHasArrived(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := named(v, 20)
		inTurn(v, bs[:18]...)
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the night is over")) })
		_, err := bs[18].Await(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, ": context canceled: the night is over: 19 of 20 have arrived: "+shown("a", "b", "c"))
		require.ErrorContains(t, err, shown("p")+" and 3 more")
		waitingAt(v, bs[0], 0)
		require.NoError(t, bs[0].Reset(context.Background()))
	})
}

func TestARemovalByHandIsTheCause(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := named(v, 3)
		all := inTurn(v, bs[:2]...)
		v.Remove(proving.BarrierPath + "/open-0")
		brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.Removed, Parties: 3, Count: 2, Arrived: people("a", "b")},
			": somebody has removed nodes of the barrier; 2 of 3 had arrived: "+shown("a", "b"), all...)
	})
}

func TestAFailedActionNamesTheProcessThatRanIt(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		own := errors.New("disk full")
		bs, _ := named(v, 3, zkbarrier.WithAction(func(context.Context) error { return own }))
		all := inTurn(v, bs[:2]...)
		_, err := bs[2].Await(context.Background())
		require.ErrorIs(t, err, own)
		require.NotErrorIs(t, err, zksync.ErrBroken)
		brokenWith(v, zkbarrier.BrokenError{Why: zkbarrier.ActionFailed, By: people("c"), Parties: 3, Count: 3},
			": the action failed in "+shown("c")+"; 3 of 3 had arrived", all...)
	})
}

func TestTheContextOfAnActionEndsWithWhatBrokeTheBarrier(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, sessions := named(v, 3, zkbarrier.WithAction(func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		all := append(inTurn(v, bs[:2]...), await(context.Background(), bs[2]))
		time.Sleep(3 * time.Second)
		v.Expire(sessions[1])
		for _, a := range []*awaiting{all[0], all[2]} {
			v.Awaits(a.done, "Await to return")
			var why *zkbarrier.BrokenError
			require.ErrorAs(t, a.err, &why)
			require.Equal(t, people("b"), why.By)
			require.Equal(t, 1, strings.Count(a.err.Error(), " died"), "%v", a.err)
		}
	})
}

// The record of an older version, and of one that was written externally, says less.
func TestTheEndOfAGenerationWithoutACauseIsReadToo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs, _ := named(v, 3)
		all := inTurn(v, bs[:1]...)
		require.NoError(t, bs[2].Reset(context.Background()))
		brokenFor(v, all...)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := bs[0].Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for data, text := range map[string]string{
			`{"broken":true}`: "",
			`{"broken":true,"why":"died","by":{"host":"h\u001b[31m","pid":-4,"name":"x"},"count":1,"arrived":[{"host":"g","pid":2}]}`: ": h[31m (x) died; 1 of 3 had arrived: g (pid 2)",
			`{"broken":true,"why":"bored"}`: "",
		} {
			v.Server.Set(proving.BarrierPath+"/ended-1", []byte(data))
			_, err := bs[1].Await(context.Background())
			require.EqualError(t, err, "zkbarrier: await "+proving.BarrierPath+": the barrier is broken"+text+untilReset)
		}
	})
}

// Another program has written to the base node, so the servers refuse the first request of the party that gives up.
func TestAPartyThatGivesUpIsNamedThoughTheBaseNodeWasWritten(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		bs := barriers(v, 3)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		leaves := await(ctx, bs[0])
		gathered(v, bs[1], 1)
		stays := await(context.Background(), bs[1])
		gathered(v, bs[2], 2)
		n, _ := v.Server.Node(proving.BarrierPath)
		v.Server.Set(proving.BarrierPath, n.Data)
		cancel()
		v.Awaits(leaves.done, "Await that gave up")
		v.Awaits(stays.done, "Await of the other")
		broken := new(zkbarrier.BrokenError)
		require.ErrorAs(t, stays.err, &broken)
		require.Equal(t, zkbarrier.GaveUp, broken.Why)
	})
}
