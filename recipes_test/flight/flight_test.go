package flight_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	flightPath = "/flights"
	flightKey  = "user 42"
	flightDir  = flightPath + "/user%2042"
	flightLock = flightDir + "/flight"
)

func flights(v *proving.Env, n int) []*zkflight.Flight[string] {
	v.T.Helper()
	all := make([]*zkflight.Flight[string], n)
	for i := range all {
		all[i] = zkflight.New[string](v.Session(), flightPath)
	}
	return all
}

// trip is one call of Do.
type trip struct {
	done   chan struct{}
	value  string
	err    error
	shared bool
}

// asks starts a call of Do.
func asks(ctx context.Context, f *zkflight.Flight[string], fn func(context.Context) (string, error)) *trip {
	p := &trip{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.value, p.err, p.shared = f.Do(ctx, flightKey, fn)
	}()
	return p
}

// gets waits for a result.
func gets(v *proving.Env, p *trip, value string, shared bool) {
	v.T.Helper()
	v.Awaits(p.done, "Do")
	require.NoError(v.T, p.err)
	require.Equal(v.T, value, p.value)
	require.Equal(v.T, shared, p.shared)
}

// gate is a function under a test's control.
type gate struct {
	began, finish chan struct{}
	value         string
	err           error
	ctx           context.Context
}

func newGate(value string) *gate {
	return &gate{began: make(chan struct{}), finish: make(chan struct{}), value: value}
}

func (g *gate) run(ctx context.Context) (string, error) {
	g.ctx = ctx
	close(g.began)
	<-g.finish
	return g.value, g.err
}

// runs has a call of Do run a function that returns value once its gate is opened.
func runs(v *proving.Env, f *zkflight.Flight[string], value string) (*gate, *trip) {
	v.T.Helper()
	g := newGate(value)
	p := asks(context.Background(), f, g.run)
	v.Awaits(g.began, "the function")
	return g, p
}

// admitted waits until a result is for all who have asked: those who join a waiting call are admitted every 10 ms.
func admitted(v *proving.Env) {
	v.T.Helper()
	v.Quiet()
	<-time.After(10 * time.Millisecond)
	v.Quiet()
}

func says(value string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return value, nil }
}

func TestWhoAsksWhileOneRunsGetsItsResult(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 4)
		g, first := runs(v, fs[0], "fresh")
		require.True(t, zksync.LeaseFrom(g.ctx).Valid())
		var others []*trip
		for i, f := range fs[1:] {
			for range 3 {
				others = append(others, asks(context.Background(), f, v.Never))
			}
			v.Queued(flightLock, i+2)
		}
		others = append(others, asks(context.Background(), fs[0], v.Never))
		admitted(v)
		close(g.finish)
		for _, p := range append(others, first) {
			gets(v, p, "fresh", true)
		}
		v.Queued(flightLock, 0)
	})
}

func TestNothingIsKeptForWhoAsksLater(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		fs := flights(v, 3)
		for i := range 6 {
			value, err, shared := fs[i%3].Do(context.Background(), flightKey, says(fmt.Sprint(i)))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), value)
			require.False(t, shared)
		}
		v.Queued(flightLock, 0)
	})
}

func TestKeysDoNotMeetAndAnyTextIsAKey(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		long := strings.Repeat("/päth", 100)
		keys := []string{"", ".", "..", "...", "/", "a/b", "a%2Fb", "%", "%-", "ключ", "a b", "\x00\xff\u007f", "🐘", "zookeeper", long, long + "x"}
		var all sync.WaitGroup
		running := make(chan struct{}, len(keys))
		proceed := make(chan struct{})
		for _, key := range keys {
			all.Go(func() {
				value, err, shared := f.Do(context.Background(), key, func(context.Context) (string, error) {
					running <- struct{}{}
					<-proceed // until all run: none waits for another one
					return key, nil
				})
				require.NoError(t, err, "%q", key)
				require.Equal(t, key, value)
				require.False(t, shared, "%q", key)
			})
		}
		for range keys {
			<-running
		}
		require.Len(t, v.Children(flightPath), len(keys))
		close(proceed)
		all.Wait()
	})
}

func TestMisuseOfAFlightIsReportedByTheFirstCall(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		s := v.Session()
		for _, f := range []*zkflight.Flight[int]{
			zkflight.New[int](nil, "/a"), zkflight.New[int](s, "a"), zkflight.New[int](s, "/"),
			zkflight.New[int](s, "/a", zksync.WithLockDelay(time.Second)),
		} {
			_, err, _ := f.Do(ctx, "k", nil)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorIs(t, (<-f.DoChan(ctx, "k", nil)).Err, zksync.ErrMisuse)
		}
		require.ErrorIs(t, zkflight.New[int](s, "/").Forget(ctx, "k"), zksync.ErrMisuse)
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err, _ := zkflight.New[int](s, "/a").Do(over, "k", nil)
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, v.Exists("/a"))
		v.Put("/b/k", "something else")
		_, err, _ = zkflight.New[int](s, "/b").Do(ctx, "k", nil)
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}

func TestDoChanSendsWhatDoReturns(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		f := flights(v, 1)[0]
		g := newGate("fresh")
		ctx, cancel := context.WithCancel(context.Background())
		a, b := f.DoChan(context.Background(), flightKey, g.run), f.DoChan(ctx, flightKey, v.Never)
		c := asks(context.Background(), f, v.Never)
		v.Awaits(g.began, "the function")
		v.Quiet()
		cancel()
		require.ErrorIs(t, (<-b).Err, context.Canceled)
		close(g.finish)
		require.Equal(t, zkflight.Result[string]{Val: "fresh", Shared: true}, <-a)
		gets(v, c, "fresh", true)
		r := <-f.DoChan(context.Background(), flightKey, func(context.Context) (string, error) { return "", proving.ErrTest })
		require.True(t, errors.Is(r.Err, proving.ErrTest))
		require.False(t, r.Shared)
	})
}
