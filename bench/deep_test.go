package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// evicted is a waiter whose session ends while it waits.
type evicted struct{ Locker }

var errEvicted = errors.New("session expired")

func (evicted) Acquire(context.Context) error { return errEvicted }

func TestTheSessionsThatLoseTheirPlacesAreCounted(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	for _, name := range []string{Fleet, Crowd} {
		p := NewPeer("peer", map[string]Opener{name: func(ctx context.Context, at Site) (*Crew, error) {
			crew, err := deepCrew(ctx, at)
			for i := range 3 {
				crew.Lockers[2*i+1] = evicted{crew.Lockers[2*i+1]}
			}
			return crew, err
		}})
		_, err := p.Run(t.Context(), slice(t, srv, addr, of(t, name, 8)))
		require.ErrorIs(t, err, errEvicted)
		if name == Fleet {
			require.ErrorContains(t, err, "3 of 8 sessions lost their places, the first: acquire: session expired")
		}
	}
}

func TestALockOfAFleetThatExcludesNobodyFails(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	p := NewPeer("peer", map[string]Opener{Fleet: func(ctx context.Context, at Site) (*Crew, error) {
		crew, err := Exclusive(crewOf(9))(ctx, at)
		crew.Queued = func() (int, error) { return 9, nil }
		return crew, err
	}})
	_, err := p.Run(t.Context(), slice(t, srv, addr, of(t, Fleet, 8)))
	require.ErrorIs(t, err, errTooMany)
}

func TestAFleetIsSettledWhenOnlyProofsOfLifeAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		m, ended := &Meter{}, make(chan struct{})
		defer func() { cancel(); <-ended }()
		at, began := Site{Meter: m}, time.Now()
		ask := func(n int64) { m.requests.Add(n); m.replies.Add(n) }
		go func() {
			defer close(ended)
			for i := 0; ctx.Err() == nil; i++ {
				time.Sleep(9 * time.Millisecond) // never at the instant of a look
				ask(1)
				if i == 10 {
					ask(20) // a waiter still enters
				}
			}
		}()
		require.Equal(t, 100*time.Millisecond, at.settle(ctx, Traffic{}, 20, 10).Sub(began), "the first look after the last entry")
		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		at.settle(short, Traffic{}, 0, 0)
		require.Error(t, short.Err(), "one that must be silent is not")
	})
}
