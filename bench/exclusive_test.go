package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// generous is a lock that everybody gets at once.
type generous struct{}

func (generous) Acquire(context.Context) error { return nil }

func (generous) Release() error { return nil }

func crewOf(n int) Opener {
	return func(context.Context, Site) (*Crew, error) {
		c := &Crew{Close: func() {}}
		for range n {
			c.Lockers = append(c.Lockers, generous{})
		}
		return c, nil
	}
}

func TestMoreThanMayHoldAreFound(t *testing.T) {
	crew, err := limited(2, crewOf(3))(t.Context(), Site{})
	require.NoError(t, err)
	hold := func(i int) error { return crew.Lockers[i].Acquire(t.Context()) }
	for range 2 {
		require.NoError(t, hold(0))
		require.NoError(t, hold(1))
		require.ErrorIs(t, hold(2), errTooMany)
		for _, l := range crew.Lockers {
			require.NoError(t, l.Release())
		}
	}
}

func TestALockThatExcludesNobodyFailsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	_, addr, _ := serve(t)
	cfg := config(addr, 15*time.Millisecond, of(t, Contended, 2))
	cfg.Peers[1] = NewPeer("generous", map[string]Opener{Contended: func(ctx context.Context, at Site) (*Crew, error) {
		crew, err := Exclusive(crewOf(3))(ctx, at)
		require.NoError(t, err)
		return crew, crew.Lockers[0].Acquire(ctx) // and so nobody else may get it
	}})
	rows, err := runWith(t, context.Background(), cfg)
	require.NoError(t, err)
	require.Contains(t, rows[1].Error, errTooMany.Error())
	require.Empty(t, rows[0].Error+rows[2].Error)
}

// Whoever measures a lock looks whether it excludes. Readers exclude nobody, and a client with a lock of its own meets nobody. A counter is no lock.
func TestEveryLockIsLookedAt(t *testing.T) {
	t.Parallel()
	srv, addr, _ := serve(t)
	at := slice(t, srv, addr, of(t, Contended, 2))
	for _, p := range Peers() {
		for name, open := range p.(*inProcess).openers {
			at.Scenario.Name = name
			crew, err := open(t.Context(), Site{Slice: at, Meter: &Meter{}})
			require.NoError(t, err)
			for i, l := range crew.Lockers {
				k, ok := l.(*looker)
				require.Equal(t, name != SharedReaders && name != Many && name != Counter, ok, "%s %s", p.Name(), name)
				switch {
				case !ok:
				case name == Semaphore:
					require.Equal(t, [2]int64{1, Permits}, [2]int64{k.weight, k.most})
				case name == Readers:
					require.Equal(t, [2]int64{int64(i) + 1, 2}, [2]int64{k.weight, k.most}, "a reader, and the writer")
				default:
					require.Equal(t, [2]int64{1, 1}, [2]int64{k.weight, k.most}, name)
				}
				if ok {
					require.Same(t, crew.Lockers[0].(*looker).inside, k.inside)
				}
			}
			crew.Close()
		}
	}
}
