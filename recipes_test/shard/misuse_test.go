package zkshard_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A killed process is followed by one with the same session file: on each ensemble its session is ended at once.
func TestAcceptance212EachEnsembleHasASessionFile(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		file := zksync.WithSessionFile(filepath.Join(t.TempDir(), "session"))
		p := &process{w: &storm{world: w}, cut: make(map[string]int)}
		p.s = w.connect("a b", "", file, zksync.WithDialer(p.dial))
		for _, name := range names {
			_, err := p.s.NewMutex(name).LockContext(t.Context())
			require.NoError(t, err)
		}
		_, err := w.try(t.Context(), "a b", "", file)
		require.ErrorIs(t, err, zksync.ErrMisuse, "it runs")
		p.cut["a"], p.cut["b"] = 1, 1
		for host, session := range p.s.All() {
			require.True(t, w.srvs[host].Disconnect(session.ID()))
		}
		_ = p.s.Close() // it cannot end its sessions, but frees the files, as the kernel would
		start := time.Now()
		next := w.connect("b a", "", file)
		for _, name := range names {
			l, err := next.NewMutex(name).LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
		}
		require.Less(t, time.Since(start), time.Second)
	})
}

func TestAcceptance212ManyEnsembles(t *testing.T) {
	play(t, 1, func(t *testing.T, w *world) {
		var all []string
		for i := range 40 {
			all = append(all, fmt.Sprintf("a/%d", i))
		}
		many := strings.Join(all, " ")
		one := w.connect(many, "")
		two := w.connect(many, "")
		require.Equal(t, at(one, paths(50)), at(two, paths(50)))
		l, err := one.NewMutex("/p").LockContext(t.Context())
		require.NoError(t, err)
		_, err = two.NewMutex("/p").TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, l.Unlock())
	})
}

// Close during a call ends it, and may be called again; a Connect whose context ends leaves nothing.
func TestAcceptance214CloseEndsCalls(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		w.srvs["c"] = w.srvs["b"]
		s, other := w.connect("a b", ""), w.connect("a b", "")
		for _, name := range names {
			_, err := other.NewMutex(name).LockContext(t.Context())
			require.NoError(t, err)
		}
		failed := make(chan error)
		for _, name := range names {
			go func() {
				_, err := s.NewMutex(name).LockContext(context.Background())
				failed <- err
			}()
		}
		synctest.Wait()
		require.NoError(t, s.Close())
		for range names {
			require.ErrorIs(t, <-failed, zksync.ErrClosed)
		}
		require.NoError(t, s.Close())
		_, err := s.NewMutex("/p").LockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrClosed)

		w.srvs["b"].Stop()
		for _, c := range []config{{"b", ""}, {"a b c", "a b"}, {"b", "a"}} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err = w.try(ctx, c.to, c.from)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded, c)
		}
		require.Len(t, w.srvs["a"].Sessions(), 1)
	})
}

// A process that moves loses one of two leases: its function is told, and the other lease is released.
func TestAcceptance217AProcessThatMovesLosesOneOfTwoLeases(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		old := w.connect("a", "")
		for _, lost := range []string{"a", "b"} {
			moving := w.connect("b", "a")
			err := moving.NewMutex("/p").Do(t.Context(), func(ctx context.Context, leases zksync.Leases) error {
				require.Len(t, leases, 2)
				_, err := old.NewMutex("/p").TryLockContext(t.Context())
				require.ErrorIs(t, err, zksync.ErrNotAcquired)
				w.srvs[lost].Expire(sessionOf(moving, lost).ID())
				<-ctx.Done()
				require.ErrorIs(t, context.Cause(ctx), zksync.ErrLost)
				require.False(t, leases.Valid())
				require.ErrorContains(t, leases.Err(), "/p")
				return nil
			})
			require.ErrorIs(t, err, zksync.ErrLost)
			for _, s := range []*zkshard.Shards{old, moving} {
				l, err := s.NewMutex("/p").TryLockContext(t.Context())
				require.NoError(t, err, lost)
				require.NoError(t, l.Unlock())
			}
			require.NoError(t, moving.Close())
		}
	})
}

// A call of an old process that waits while the move goes by, without a connection, is refused.
func TestAcceptance217ACallThatWaitsThroughTheWholeMoveIsRefused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		p := &process{w: &storm{world: w}, cut: make(map[string]int)}
		p.s = w.connect("a b", "", zksync.WithDialer(p.dial))
		holder := w.connect("a b", "")
		failed := make(chan error)
		for _, name := range names {
			l, err := holder.NewMutex(name).LockContext(t.Context())
			require.NoError(t, err)
			require.Len(t, l, 1)
			go func() {
				_, err := p.s.NewMutex(name).LockContext(context.Background())
				failed <- err
			}()
		}
		synctest.Wait()
		heal := []func(){p.cutOff("a"), p.cutOff("b")}
		moving := w.connect("b c", "a b")
		require.NoError(t, holder.Close())
		next := w.connect("b c", "")
		require.NoError(t, moving.Close())
		for _, name := range names {
			_, err := next.NewMutex(name).LockContext(t.Context())
			require.NoError(t, err)
		}
		for _, f := range heal {
			f()
		}
		for range names {
			require.ErrorContains(t, <-failed, "was replaced by")
		}
	})
}

func TestAcceptance217ARolloutIsSeenInTheLog(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		var b bytes.Buffer
		log := zksync.WithLogger(slog.New(slog.NewTextHandler(&b, nil)))
		old := w.connect("a", "", log)
		moving := w.connect("a b", "a", log)
		require.Empty(t, b.String())
		time.AfterFunc(10*time.Second, func() { _ = old.Close() })
		w.connect("b a", "", log)
		require.NoError(t, moving.Close())
		for _, host := range []string{"a", "b"} {
			require.Equal(t, 1, strings.Count(b.String(), "level=WARN msg=\"other processes keep this one out of an ensemble: waiting for their end\" server="+host+" "))
			require.Equal(t, 1, strings.Count(b.String(), "level=INFO msg=\"an ensemble is open for a new list\" server="+host+" reason=\"[\\\"a\\\"] is used no longer\""))
		}
		require.Equal(t, 4, strings.Count(b.String(), "\n"), b.String())
	})
}

// The node of an old process is created so late that the move is over.
func TestAcceptance217AnEntryThatArrivesLateFindsTheListGone(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		old := w.connect("a", "")
		moving := w.connect("b", "a")
		held := make(chan struct{})
		w.srvs["a"].InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Multi && strings.HasPrefix(q.Path, zkshard.Path+"/zkshard/list-1/") {
				return zktest.Verdict{Hold: held}
			}
			return zktest.Verdict{}
		})
		failed := make(chan error)
		go func() {
			_, err := w.try(context.Background(), "a", "")
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, old.Close())
		w.connect("b", "")
		require.NoError(t, moving.Close())
		close(held)
		require.ErrorContains(t, <-failed, "was replaced by")
	})
}
