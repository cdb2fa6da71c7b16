package recipes_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// lastNumber is how the name of a node ends that was made when the sequence numbers were used up.
const lastNumber = "2147483647"

// inLine has eight sessions queue one after the other, across the end of the sequence numbers, and
// checks that they are granted in that order, each alone.
func inLine(t *testing.T, v *env) {
	t.Helper()
	ms := v.mutexes(8, zksync.WithHandover(0))
	for range 2 {
		holder := v.lock(ms[0])
		waiters := v.line(ms[1:]...)
		require.False(t, ms[7].TryLock(), "the queue is not empty")
		for i, a := range waiters {
			require.NoError(t, holder.Unlock())
			next := v.granted(a)
			require.Positive(t, next.Token().Compare(holder.Token()))
			v.quiet()
			for _, later := range waiters[i+1:] {
				require.True(t, later.pending())
			}
			holder = next
		}
		require.True(t, strings.HasSuffix(holder.Path(), lastNumber), holder.Path())
		require.NoError(t, holder.Unlock())
	}
}

func TestAcceptance025PastTheLastSequenceNumberQuietCreatesKeepTheirOrder(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		v.srv.SetSequence(lockPath, math.MaxInt32-3)
		inLine(t, v)
		increments(t, v, 10, v.mutexes(4)...)
	})
}

// Creates that are in flight together get negative numbers, which sort before, and are shown with a
// sign: only the zxids know who came first.
func TestAcceptance025PastTheLastSequenceNumberOverlappingCreatesKeepTheirOrder(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		v.put(lockPath, "")
		v.srv.SetSequence(lockPath, math.MaxInt32-6)
		var mu sync.Mutex
		last, negative := 0, 0
		v.srv.OnCommit(func(txn zktest.Txn) {
			for _, c := range txn.Changes {
				if c.Kind != zktest.Created {
					continue
				}
				mu.Lock()
				if strings.Contains(c.Path, "--") {
					negative++
				} else if strings.HasSuffix(c.Path, lastNumber) {
					last++
				}
				mu.Unlock()
			}
		})
		ms := v.mutexes(6, zksync.WithHandover(0))
		for range 20 { // all of them queue at once, every time
			increments(t, v, 1, ms...)
		}
		mu.Lock()
		defer mu.Unlock()
		require.Positive(t, negative, "no two creates were in flight together")
		require.Greater(t, last, 1, "the last number was not repeated")
	}, zktest.WithCommitLatency(3*time.Millisecond))
}

func TestAcceptance025FourContendersOfARealServerPassTheLastSequenceNumber(t *testing.T) {
	onOwnServer(t, func(t *testing.T, v *env, e *ensemble.Ensemble) {
		v.put(lockPath, "")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.SetSequence(ctx, v.chroot+lockPath, math.MaxInt32-3))
		v.connected(v.admin)
		inLine(t, v)
		increments(t, v, 25, v.mutexes(4, zksync.WithHandover(0))...)
	})
}
