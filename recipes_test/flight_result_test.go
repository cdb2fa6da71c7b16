package recipes_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAnErrorTravelsAsItsText(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		here := zkflight.New[string](v.session(zksync.WithName("billing")), flightPath)
		g := newGate("")
		g.err = errTest
		first := asks(context.Background(), here, g.run)
		v.awaits(g.began, "the function")
		token := zkflight.Lease(g.ctx).Token()
		other := asks(context.Background(), v.flights(1)[0], v.never)
		v.queued(flightLock, 2)
		close(g.finish)
		v.awaits(first.done, "Do")
		require.True(t, first.err == errTest, "fn's own error, as it is: %v", first.err)
		require.True(t, first.shared)
		v.awaits(other.done, "Do")
		require.True(t, other.shared)
		var remote *zkflight.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.NotErrorIs(t, other.err, zksync.ErrMisuse)
		host, _ := os.Hostname()
		require.Equal(t, zksync.Owner{Host: host, PID: os.Getpid(), Name: "billing"}, remote.Owner)
		require.Equal(t, errTest.Error(), remote.Text)
		require.Equal(t, token, remote.Token)
		require.False(t, remote.Panicked)
		require.Contains(t, other.err.Error(), flightDir)
		require.Contains(t, other.err.Error(), "billing on "+host)
		// An error is not kept either.
		v.gets(asks(context.Background(), here, says("better")), "better", false)
	})
}

func TestAResultThatCannotTravelIsAnErrorForEverybody(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		big := newGate(strings.Repeat("x", 900<<10))
		fs := v.flights(2)
		first := asks(context.Background(), fs[0], big.run)
		v.awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		close(big.finish)
		for _, p := range []*trip{first, other} {
			v.awaits(p.done, "Do")
			require.ErrorIs(t, p.err, zksync.ErrMisuse)
			require.ErrorContains(t, p.err, "bytes")
		}
		require.Len(t, first.value, 900<<10)
		f := zkflight.New[func()](v.session(), flightPath)
		_, err, _ := f.Do(context.Background(), "other", func(context.Context) (func(), error) { return func() {}, nil })
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestAResultOfTheGreatestSizeTravels(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		big := newGate(strings.Repeat("x", 800<<10-2))
		fs := v.flights(2)
		first := asks(context.Background(), fs[0], big.run)
		v.awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.never)
		v.queued(flightLock, 2)
		close(big.finish)
		v.gets(first, big.value, true)
		v.gets(other, big.value, true)
	})
}

func TestAResultOfAnotherTypeIsAnError(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		g := newGate("text")
		first := asks(context.Background(), v.flights(1)[0], g.run)
		v.awaits(g.began, "the function")
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err, _ = zkflight.New[int](v.session(), flightPath).Do(context.Background(), flightKey, nil)
		}()
		v.queued(flightLock, 2)
		close(g.finish)
		v.gets(first, "text", true)
		v.awaits(done, "Do")
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}
