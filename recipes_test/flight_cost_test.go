package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkonce"
)

func (v *env) calmFlights(n int) []*zkflight.Flight[string] {
	v.t.Helper()
	all := make([]*zkflight.Flight[string], n)
	for i := range all {
		all[i] = zkflight.New[string](calm(v), flightPath)
	}
	return all
}

// saysAtLast is a function that lasts until its own node is watched: the request for that is
// not made if the lease is over by then.
func (v *env) saysAtLast(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		v.quiet()
		return text, nil
	}
}

// These are exact where time is virtual: whoever has not been granted within 10 ms begins to
// listen, which real servers may take.

// Queue; read the last result; watch the own node, as every function under a lease; tell that the
// run is over; leave the queue.
func TestAFlightWithoutOthersIsFiveRequests(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		f := v.calmFlights(1)[0]
		v.gets(asks(context.Background(), f, says("first")), "first", false)
		v.costs(5, func() {
			v.gets(asks(context.Background(), f, v.saysAtLast("x")), "x", false)
		})
	})
}

// It queues, lists, watches; watches the key's node, syncs and reads it; and when that changes,
// reads it and leaves the queue. The runner's share is one more than without others: the result.
func TestAWaiterForAFlightIsEightRequests(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.calmFlights(2)
		v.gets(asks(context.Background(), fs[0], says("first")), "first", false)
		g := newGate("x")
		var first, second *trip
		v.costs(3, func() {
			first = asks(context.Background(), fs[0], g.run)
			v.awaits(g.began, "the function")
		})
		v.costs(6, func() {
			second = asks(context.Background(), fs[1], v.never)
			time.Sleep(time.Second)
		})
		v.costs(3+2, func() {
			close(g.finish)
			v.gets(first, "x", true)
			v.gets(second, "x", true)
		})
	})
}

func TestGoroutinesOfOneProcessAreOneContenderForAFlight(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		f := v.calmFlights(1)[0]
		v.gets(asks(context.Background(), f, says("first")), "first", false)
		v.costs(5, func() {
			g := newGate("x")
			all := []*trip{asks(context.Background(), f, g.run)}
			v.awaits(g.began, "the function")
			for range 99 {
				all = append(all, asks(context.Background(), f, v.never))
			}
			v.quiet()
			close(g.finish)
			for _, p := range all {
				v.gets(p, "x", true)
			}
		})
	})
}

func TestThoseWhoJoinAWaiterAreTwoRequestsForAllThatComeAtATime(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		fs := v.calmFlights(2)
		g := newGate("x")
		all := []*trip{asks(context.Background(), fs[0], g.run)}
		v.awaits(g.began, "the function")
		all = append(all, asks(context.Background(), fs[1], v.never))
		time.Sleep(time.Second)
		for range 3 {
			v.costs(2, func() {
				all = append(all, asks(context.Background(), fs[1], v.never))
				time.Sleep(time.Second)
			})
		}
		v.costsAtMost(2*2, func() {
			for range 100 {
				all = append(all, asks(context.Background(), fs[1], v.never))
			}
			time.Sleep(time.Second)
		})
		close(g.finish)
		for _, p := range all {
			v.gets(p, "x", true)
		}
	})
}

func TestForgetIsOneRequest(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		f := v.calmFlights(1)[0]
		g := newGate("x")
		first := asks(context.Background(), f, g.run)
		v.awaits(g.began, "the function")
		v.costs(1, func() { require.NoError(t, f.Forget(context.Background(), flightKey)) })
		close(g.finish)
		v.gets(first, "x", false)
		v.costs(1, func() { require.NoError(t, f.Forget(context.Background(), flightKey)) })
	})
}

// The outcome is looked for, in vain; then queue, look again, watch the own node, write, leave.
func TestAOnceIsSixRequestsAndTwoWhereItIsDone(t *testing.T) {
	eachAlone(t, func(t *testing.T, v *env) {
		v.put(oncePath+"/lock", "")
		o := zkonce.New(calm(v), oncePath)
		do := func(o *zkonce.Once) func() {
			return func() {
				value, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
					v.quiet() // until its own node is watched
					return []byte("x"), nil
				})
				require.NoError(t, err)
				require.Equal(t, "x", string(value))
			}
		}
		v.costs(6, do(o))
		v.costs(2, do(zkonce.New(calm(v), oncePath)))
	})
}
