package reentrant_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// nested is a reentrant read-write lock, and what its one owner does with it: a plain model.
type nested struct {
	v      *proving.Env
	m      *reentrant.RWMutex
	other  *zkrwmutex.RWMutex // of another process
	story  string
	writes int // levels
	reads  int // levels, of which
	leases []*zksync.Lease
	wrote  []*zksync.Lease // write levels with a lease, of writes
	kept   bool            // exclusive, though nobody writes any more, for the sake of a lease
	token  zksync.Token
}

func TestAcceptance033RandomNestingOfWritesReadsAndDowngradesAgreesWithAModel(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		games, steps := 60, 30
		if !v.Virtual {
			games, steps = 3, 12
		}
		s, other := v.Session(), zkrwmutex.New(v.Session(), proving.LockPath)
		for seed := range games {
			n := &nested{v: v, m: rrw(v, s), other: other, story: fmt.Sprintf("game %d:", seed)}
			rnd := rand.New(rand.NewPCG(33, uint64(seed)))
			for range steps {
				n.step(t, rnd)
				n.check(t)
			}
			for n.writes+n.reads > 0 {
				n.back(t, rnd)
				n.check(t)
			}
			require.Panics(t, n.m.Unlock, n.story)
			require.Panics(t, n.m.RUnlock, n.story)
			v.Queued(proving.LockPath, 0)
		}
	})
}

// step goes one level deeper or comes one back.
func (n *nested) step(t *testing.T, rnd *rand.Rand) {
	reader := n.writes == 0 && n.reads > 0 // who must not write
	switch rnd.IntN(8) {
	case 0, 1:
		n.story += " Lock"
		if reader {
			require.Panics(t, n.m.Lock, n.story)
			return
		}
		n.m.Lock()
		n.writes++
	case 2:
		n.story += " LockContext"
		l, err := n.m.LockContext(context.Background())
		if reader {
			require.ErrorIs(t, err, zksync.ErrUpgrade, n.story)
			return
		}
		require.NoError(t, err, n.story)
		n.writes++
		n.wrote = append(n.wrote, l)
	case 3:
		n.story += " RLock"
		n.m.RLock()
		n.reads++
	case 4:
		n.story += " RLockContext"
		l, err := n.m.RLockContext(context.Background())
		require.NoError(t, err, n.story)
		n.reads++
		n.leases = append(n.leases, l)
	default:
		n.back(t, rnd)
	}
}

// back takes one level back, if there is one.
func (n *nested) back(t *testing.T, rnd *rand.Rand) {
	writing := n.writes > 0 || n.kept
	ways := []func(){}
	if n.writes > len(n.wrote) {
		ways = append(ways, func() { n.story += " Unlock"; n.m.Unlock(); n.writes-- })
	}
	if len(n.wrote) > 0 {
		ways = append(ways, func() {
			n.story += " write.Unlock"
			require.NoError(t, take(rnd, &n.wrote).Unlock(), n.story)
			n.writes--
		})
	}
	if n.reads > len(n.leases) {
		ways = append(ways, func() { n.story += " RUnlock"; n.m.RUnlock(); n.reads-- })
	}
	if len(n.leases) > 0 {
		ways = append(ways, func() {
			n.story += " read.Unlock"
			require.NoError(t, take(rnd, &n.leases).Unlock(), n.story)
			n.reads--
		})
	}
	if len(ways) == 0 {
		return
	}
	ways[rnd.IntN(len(ways))]()
	n.kept = writing && n.writes == 0 && len(n.leases) > 0
}

// take takes any one out.
func take(rnd *rand.Rand, leases *[]*zksync.Lease) *zksync.Lease {
	ls := *leases
	i := rnd.IntN(len(ls))
	l := ls[i]
	ls[i] = ls[len(ls)-1]
	*leases = ls[:len(ls)-1]
	return l
}

// check compares the lock's counts, and what another process may do, with the model.
func (n *nested) check(t *testing.T) {
	t.Helper()
	require.Equal(t, n.writes, n.m.HoldCount(), n.story)
	require.Equal(t, n.reads, n.m.ReadHoldCount(), n.story)
	require.Equal(t, n.writes > 0, n.m.HeldByCurrent(), n.story)
	l := n.m.Lease()
	require.Equal(t, n.writes+n.reads > 0, l != nil, n.story)
	if l != nil {
		require.True(t, l.Valid(), n.story)
		require.GreaterOrEqual(t, l.Token().Compare(n.token), 0, n.story)
		n.token = l.Token()
	}
	for _, l := range append(append([]*zksync.Lease(nil), n.leases...), n.wrote...) {
		require.True(t, l.Valid(), n.story)
	}
	may := func(get func(context.Context) (*zksync.Lease, error), want bool) {
		t.Helper()
		l, err := get(context.Background())
		if want && !n.v.Virtual { // what was unlocked may go a while later: see left
			n.v.Eventually(func() bool {
				if errors.Is(err, zksync.ErrNotAcquired) {
					l, err = get(context.Background())
				}
				return !errors.Is(err, zksync.ErrNotAcquired)
			}, n.story)
		}
		if !want {
			require.ErrorIs(t, err, zksync.ErrNotAcquired, n.story)
			return
		}
		require.NoError(t, err, n.story)
		if n.writes+n.reads == 0 {
			require.GreaterOrEqual(t, l.Token().Compare(n.token), 0, n.story)
		}
		require.NoError(t, l.Unlock(), n.story)
	}
	may(n.other.TryRLockContext, n.writes == 0 && !n.kept)
	may(n.other.TryLockContext, n.writes+n.reads == 0)
}

// A writer of another process waits all the time, and is not let in at any depth.
func TestAcceptance033AWriterStaysOutOfRandomNestingUntilItsEnd(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		games, steps := 40, 20
		if !v.Virtual {
			games, steps = 2, 10
		}
		s, other := v.Session(), zkrwmutex.New(v.Session(), proving.LockPath)
		for seed := range games {
			n := &nested{v: v, m: rrw(v, s), story: fmt.Sprintf("game %d:", seed)}
			rnd := rand.New(rand.NewPCG(34, uint64(seed)))
			n.m.Lock()
			n.writes++
			w := proving.Call(context.Background(), other.LockContext)
			v.Settled(proving.LockPath, 2)
			for i := 0; i < steps || n.writes+n.reads > 1; i++ {
				if i < steps {
					n.deeper(rnd)
				}
				if n.writes+n.reads > 1 && (i >= steps || rnd.IntN(3) > 0) {
					n.back(t, rnd)
				}
				require.Equal(t, n.writes, n.m.HoldCount(), n.story)
				require.Equal(t, n.reads, n.m.ReadHoldCount(), n.story)
				require.True(t, w.Pending(), n.story)
				require.Len(t, v.Children(proving.LockPath), 2, n.story)
			}
			last := n.m.Lease().Token()
			n.back(t, rnd)
			l := v.Granted(w)
			require.Positive(t, l.Token().Compare(last), n.story)
			require.NoError(t, l.Unlock())
			v.Queued(proving.LockPath, 0)
		}
	})
}

// deeper goes one level deeper, which never waits: whoever holds does not queue behind others.
func (n *nested) deeper(rnd *rand.Rand) {
	if n.writes > 0 && rnd.IntN(2) == 0 {
		n.story += " Lock"
		n.m.Lock()
		n.writes++
		return
	}
	n.story += " RLock"
	n.m.RLock()
	n.reads++
}
