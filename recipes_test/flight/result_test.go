package flight_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAnErrorTravelsAsItsText(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		here := zkflight.New[string](v.Session(zksync.WithName("billing")), flightPath)
		g := newGate("")
		g.err = proving.ErrTest
		first := asks(context.Background(), here, g.run)
		v.Awaits(g.began, "the function")
		token := zksync.LeaseFrom(g.ctx).Token()
		other := asks(context.Background(), flights(v, 1)[0], v.Never)
		v.Queued(flightLock, 2)
		close(g.finish)
		v.Awaits(first.done, "Do")
		require.True(t, first.err == proving.ErrTest, "fn's own error, as it is: %v", first.err)
		require.True(t, first.shared)
		v.Awaits(other.done, "Do")
		require.True(t, other.shared)
		var remote *zkflight.RemoteError
		require.ErrorAs(t, other.err, &remote)
		require.NotErrorIs(t, other.err, zksync.ErrMisuse)
		host, _ := os.Hostname()
		require.Equal(t, zksync.Owner{Host: host, PID: os.Getpid(), Name: "billing"}, remote.Owner)
		require.Equal(t, proving.ErrTest.Error(), remote.Text)
		require.Equal(t, token, remote.Token)
		require.False(t, remote.Panicked)
		require.Contains(t, other.err.Error(), flightDir)
		require.Contains(t, other.err.Error(), "billing on "+host)
		// An error is not kept either.
		gets(v, asks(context.Background(), here, says("better")), "better", false)
	})
}

func TestAResultThatCannotTravelIsAnErrorForEverybody(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		big := newGate(strings.Repeat("x", 900<<10))
		fs := flights(v, 2)
		first := asks(context.Background(), fs[0], big.run)
		v.Awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 2)
		close(big.finish)
		for _, p := range []*trip{first, other} {
			v.Awaits(p.done, "Do")
			require.ErrorIs(t, p.err, zksync.ErrMisuse)
			require.ErrorContains(t, p.err, "bytes")
		}
		require.Len(t, first.value, 900<<10)
		f := zkflight.New[func()](v.Session(), flightPath)
		_, err, _ := f.Do(context.Background(), "other", func(context.Context) (func(), error) { return func() {}, nil })
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestAResultOfTheGreatestSizeTravels(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		big := newGate(strings.Repeat("x", 800<<10-2))
		fs := flights(v, 2)
		first := asks(context.Background(), fs[0], big.run)
		v.Awaits(big.began, "the function")
		other := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 2)
		close(big.finish)
		gets(v, first, big.value, true)
		gets(v, other, big.value, true)
	})
}

func TestAResultOfAnotherTypeIsAnError(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		g, first := runs(v, flights(v, 1)[0], "text")
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err, _ = zkflight.New[int](v.Session(), flightPath).Do(context.Background(), flightKey, nil)
		}()
		v.Queued(flightLock, 2)
		close(g.finish)
		gets(v, first, "text", true)
		v.Awaits(done, "Do")
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestDataOfAnotherProgramThatSayMisuseWithoutATextAreMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 2)
		g, first := runs(v, fs[0], "x")
		second := asks(context.Background(), fs[1], v.Never)
		v.Queued(flightLock, 2)
		time.Sleep(time.Second) // it listens
		v.Server.Set(flightDir, []byte(`{"misuse":true,"value":1}`))
		v.Awaits(second.done, "Do")
		require.ErrorIs(t, second.err, zksync.ErrMisuse)
		close(g.finish)
		gets(v, first, "x", false)
	})
}
