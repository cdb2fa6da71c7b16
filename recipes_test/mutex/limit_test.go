package mutex_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// lastNumber is how the name of a node ends that was made when the sequence numbers were used up.
const lastNumber = "2147483647"

// inLine has eight sessions queue one after the other, across the end of the sequence numbers, and
// checks that they are granted in that order, each alone.
func inLine(t *testing.T, v *proving.Env) {
	t.Helper()
	ms := v.Mutexes(8, zksync.WithHandover(0))
	for range 2 {
		holder := v.Lock(ms[0])
		waiters := v.Line(ms[1:]...)
		require.False(t, ms[7].TryLock(), "the queue is not empty")
		for i, a := range waiters {
			require.NoError(t, holder.Unlock())
			next := v.Granted(a)
			require.Positive(t, next.Token().Compare(holder.Token()))
			v.Quiet()
			for _, later := range waiters[i+1:] {
				require.True(t, later.Pending())
			}
			holder = next
		}
		require.True(t, strings.HasSuffix(holder.Node(), lastNumber), holder.Node())
		require.NoError(t, holder.Unlock())
	}
}

func TestAcceptance025PastTheLastSequenceNumberQuietCreatesKeepTheirOrder(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		v.Server.SetSequence(proving.LockPath, math.MaxInt32-3)
		inLine(t, v)
		increments(t, v, 10, v.Mutexes(4)...)
	})
}

// Creates that are in flight together get negative numbers, which sort before, and are shown with a
// sign: only the zxids know who came first.
func TestAcceptance025PastTheLastSequenceNumberOverlappingCreatesKeepTheirOrder(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		v.Server.SetSequence(proving.LockPath, math.MaxInt32-6)
		var mu sync.Mutex
		last, negative := 0, 0
		v.Server.OnCommit(func(txn zktest.Txn) {
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
		ms := v.Mutexes(6, zksync.WithHandover(0))
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
	proving.OnOwnServer(t, func(t *testing.T, v *proving.Env, e *ensemble.Ensemble) {
		v.Put(proving.LockPath, "")
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, e.SetSequence(ctx, v.Chroot+proving.LockPath, math.MaxInt32-3))
		v.Connected(v.Admin)
		inLine(t, v)
		increments(t, v, 25, v.Mutexes(4, zksync.WithHandover(0))...)
	})
}
