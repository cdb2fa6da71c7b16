package flight_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
)

func calmFlights(v *proving.Env, n int) []*zkflight.Flight[string] {
	v.T.Helper()
	all := make([]*zkflight.Flight[string], n)
	for i := range all {
		all[i] = zkflight.New[string](proving.Calm(v), flightPath)
	}
	return all
}

// saysAtLast is a function that lasts until its own node is watched: the request for that is
// not made if the lease is over by then.
func saysAtLast(v *proving.Env, text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		v.Quiet()
		return text, nil
	}
}

// Queue; read the last result; watch the own node, as every function under a lease; tell that the
// run is over; leave the queue.
func TestAFlightWithoutOthersIsFiveRequests(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		f := calmFlights(v, 1)[0]
		gets(v, asks(context.Background(), f, says("first")), "first", false)
		v.Costs(5, func() {
			gets(v, asks(context.Background(), f, saysAtLast(v, "x")), "x", false)
		})
	})
}

// It queues, lists, watches; watches the key's node and reads it; and when that changes,
// reads it and leaves the queue. The runner's share is one more than without others: the result.
func TestAWaiterForAFlightIsSevenRequests(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := calmFlights(v, 2)
		gets(v, asks(context.Background(), fs[0], says("first")), "first", false)
		g := newGate("x")
		var first, second *trip
		v.Costs(3, func() {
			first = asks(context.Background(), fs[0], g.run)
			v.Awaits(g.began, "the function")
		})
		v.Costs(5, func() {
			second = asks(context.Background(), fs[1], v.Never)
			time.Sleep(time.Second)
		})
		v.Costs(3+2, func() {
			close(g.finish)
			gets(v, first, "x", true)
			gets(v, second, "x", true)
		})
	})
}

// They join while the waiter's node is on its way, so the first read of the key's node comes after a sync.
func TestThoseWhoJoinAWaiterBeforeItListensAreOneRequest(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g, first := runs(v, calmFlights(v, 1)[0], "x")
		all := []*trip{first}
		far := proving.Calm(v)
		v.Server.Delay(far.ID(), 2*time.Millisecond, 2*time.Millisecond)
		f := zkflight.New[string](far, flightPath)
		v.Costs(5+1, func() {
			all = append(all, asks(context.Background(), f, v.Never))
			time.Sleep(time.Millisecond)
			for range 10 {
				all = append(all, asks(context.Background(), f, v.Never))
			}
			time.Sleep(time.Second)
		})
		close(g.finish)
		for _, p := range all {
			gets(v, p, "x", true)
		}
	})
}

func TestGoroutinesOfOneProcessAreOneContenderForAFlight(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		f := calmFlights(v, 1)[0]
		gets(v, asks(context.Background(), f, says("first")), "first", false)
		v.Costs(5, func() {
			g := newGate("x")
			all := []*trip{asks(context.Background(), f, g.run)}
			v.Awaits(g.began, "the function")
			for range 99 {
				all = append(all, asks(context.Background(), f, v.Never))
			}
			v.Quiet()
			close(g.finish)
			for _, p := range all {
				gets(v, p, "x", true)
			}
		})
	})
}

func TestThoseWhoJoinAWaiterAreTwoRequestsForAllThatComeAtATime(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := calmFlights(v, 2)
		g := newGate("x")
		all := []*trip{asks(context.Background(), fs[0], g.run)}
		v.Awaits(g.began, "the function")
		all = append(all, asks(context.Background(), fs[1], v.Never))
		time.Sleep(time.Second)
		for range 3 {
			v.Costs(2, func() {
				all = append(all, asks(context.Background(), fs[1], v.Never))
				time.Sleep(time.Second)
			})
		}
		v.CostsAtMost(2*2, func() {
			for range 100 {
				all = append(all, asks(context.Background(), fs[1], v.Never))
			}
			time.Sleep(time.Second)
		})
		close(g.finish)
		for _, p := range all {
			gets(v, p, "x", true)
		}
	})
}

func TestForgetIsOneRequest(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		f := calmFlights(v, 1)[0]
		g, first := runs(v, f, "x")
		v.Costs(1, func() { require.NoError(t, f.Forget(context.Background(), flightKey)) })
		close(g.finish)
		gets(v, first, "x", false)
		v.Costs(1, func() { require.NoError(t, f.Forget(context.Background(), flightKey)) })
	})
}
