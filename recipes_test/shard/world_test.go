package shard_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/go-menagerie/menagerie/internal/testing/proving" // exact pauses
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// world is some ensembles: "a:2181" is the first, "b:2181" the second.
type world struct {
	t    *testing.T
	srvs map[string]*zktest.Server
}

func play(t *testing.T, n int, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, make(map[string]*zktest.Server)}
		for i := range n {
			w.srvs[string(rune('a'+i))] = zktest.Run(t, zktest.WithLeftovers())
		}
		f(t, w)
	})
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	return w.srvs[host].DialContext(ctx, network, address)
}

// list is "a b" as connect strings.
func list(names string) []string { return strings.Fields(names) }

func (w *world) try(ctx context.Context, names, from string, opts ...zksync.SessionOption) (*zkshard.Shards, error) {
	opts = append([]zksync.SessionOption{zksync.WithDialer(w.dial)}, opts...)
	if from != "" {
		opts = append(opts, zkshard.WithMoving(list(from)))
	}
	return zkshard.Connect(ctx, list(names), opts...)
}

func (w *world) connect(names, from string, opts ...zksync.SessionOption) *zkshard.Shards {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	s, err := w.try(ctx, names, from, opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) refused(names, from string) error {
	w.t.Helper()
	_, err := w.try(w.t.Context(), names, from)
	require.ErrorIs(w.t, err, zksync.ErrMisuse)
	return err
}

func TestARolloutInThreeSteps(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		old := w.connect("a b", "")
		old2 := w.connect("b a", "")
		for _, p := range []string{"/x", "/y", "/z"} {
			l, err := old.NewMutex(p).LockContext(t.Context())
			require.NoError(t, err)
			_, err = old2.NewMutex(p).TryLockContext(t.Context())
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
			require.NoError(t, l.Unlock())
		}
		t.Log(w.refused("a b c", ""))
		mov := w.connect("a b c", "a b")
		start := time.Now()
		t.Log(w.refused("a b c", ""))
		require.Equal(t, 22502*time.Millisecond, time.Since(start), "with the end of the sessions")
		require.NoError(t, old.Close())
		require.NoError(t, old2.Close())
		synctest.Wait()
		t.Log(w.refused("a b", ""))
		fresh := w.connect("c b a", "")
		require.NoError(t, mov.Close())
		require.NotNil(t, fresh.For("/x"))
		t.Log(w.srvs["a"].Tree())
	})
}
