package zkshard_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func paths(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("/locks/%d", i))
	}
	return all
}

// at is on which ensemble each path is.
func at(s *zkshard.Shards, paths []string) map[string]string {
	all := make(map[string]string)
	for _, p := range paths {
		for servers, session := range s.All() {
			if session == s.For(p) {
				all[p] = servers
			}
		}
	}
	return all
}

// Whatever the order of the list, a path is on one ensemble, for all processes; each has about as many. An ensemble that comes takes
// paths from all others, one that leaves gives its own to all others, and no other path moves.
func TestAcceptance212PathsAreDividedByTheNamesOfTheEnsembles(t *testing.T) {
	play(t, 4, func(t *testing.T, w *world) {
		all := paths(3000)
		three := w.connect("a b c", "")
		before := at(three, all)
		require.Equal(t, before, at(w.connect("c a b", ""), all))
		count := make(map[string]int)
		for _, servers := range before {
			count[servers]++
		}
		for servers, n := range count {
			require.InDelta(t, 1000, n, 150, servers)
		}
		moved := 0
		for p, servers := range at(w.connect("a b c d", "a b c"), all) {
			if servers != before[p] {
				require.Equal(t, "d", servers)
				moved++
			}
		}
		require.InDelta(t, 750, moved, 150)
	})
}

func TestAcceptance212AnotherListIsRefused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		for _, bad := range [][]string{nil, {"a", "a"}, {"a", "a:2181"}, {"a", "zk://b"}, {""}} {
			_, err := zkshard.Connect(t.Context(), bad, zksync.WithDialer(w.dial))
			require.ErrorIs(t, err, zksync.ErrMisuse, bad)
		}
		_, err := zkshard.Connect(t.Context(), list("a b"), zkshard.WithMoving(nil))
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = zksync.Connect(t.Context(), "a", zkshard.WithMoving(list("a b")))
		require.ErrorContains(t, err, "zksync: connect a: WithMoving is an option of zkshard.Connect: misuse")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = w.try(ended, "a b", "")
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, w.srvs["a"].Requests())

		s := w.connect("a/x b", "")
		require.NoError(t, s.Close())
		start := time.Now()
		require.ErrorContains(t, w.refused("a/x c", ""), `this process has the list ["a/x" "c"], but the recorded one is ["a/x" "b"]: a move needs WithMoving(the recorded list) first`)
		require.Less(t, time.Since(start), 10*time.Millisecond, "nothing could change that soon, also without a process that runs")
		require.ErrorContains(t, w.refused("b", ""), `the recorded one is ["a/x" "b"]`)
		require.ErrorContains(t, w.refused("b b:2181/", ""), "given twice")
		w.connect("a/y c", "") // another chroot is another ensemble
	})
}

// Two connect strings that lead to one ensemble by different names.
func TestAcceptance212OneEnsembleByTwoNames(t *testing.T) {
	play(t, 2, func(t *testing.T, w *world) {
		w.srvs["alias"] = w.srvs["a"]
		require.ErrorContains(t, w.refused("a b alias", ""), "lead to the same ensemble")
		w.connect("a b", "")
		w.connect("b alias", "") // the addresses do not matter
	})
}

func TestAcceptance213WhatALockCosts(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		requests := func() (n int) {
			for _, srv := range w.srvs {
				n += srv.Requests()
			}
			return n
		}
		cost := func(f func()) int {
			time.Sleep(time.Millisecond)
			before := requests()
			f()
			synctest.Wait()
			return requests() - before
		}
		lock := func(l interface {
			LockContext(context.Context) (zksync.Leases, error)
		}) func() {
			return func() {
				got, err := l.LockContext(t.Context())
				require.NoError(t, err)
				require.NoError(t, got.Unlock())
			}
		}
		old := w.connect("a b", "")
		plain := zksync.NewMutex(w.srvs["c"].Session(t), "/p/plain")
		first := cost(func() { l, _ := plain.LockContext(t.Context()); _ = l.Unlock() })
		again := cost(func() { l, _ := plain.LockContext(t.Context()); _ = l.Unlock() })
		m := old.NewMutex("/p/plain")
		require.Zero(t, cost(func() { old.For("/plain") }))
		require.Equal(t, first, cost(lock(m)))
		require.Equal(t, again, cost(lock(m)))

		moving := w.connect("a b c", "a b")
		both := ""
		for _, p := range paths(100) {
			if moving.For(p) == sessionOf(moving, "c") {
				both = p
			}
		}
		m = moving.NewMutex(both)
		require.Equal(t, 2*first, cost(lock(m)))
		require.Equal(t, 2*again, cost(lock(m)))
		leases, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.Len(t, leases, 2)
		require.True(t, leases.Valid())
		_, err = old.NewMutex(both).TryLockContext(t.Context())
		require.ErrorIs(t, err, zksync.ErrNotAcquired)
		require.NoError(t, leases.Unlock())

		// A further process, which finds the lists recorded: a read and a node on each ensemble.
		require.Equal(t, 2*2, cost(func() { w.connect("a b", "") }))
		// A new session does the same before any call.
		id := sessionOf(old, "a").ID()
		require.True(t, w.srvs["a"].Expire(id))
		time.Sleep(time.Second)
		require.Equal(t, 2, w.srvs["a"].RequestsOf(sessionOf(old, "a").ID(), zktest.Any))
	})
}

func sessionOf(s *zkshard.Shards, servers string) *zksync.Session {
	for at, session := range s.All() {
		if at == servers {
			return session
		}
	}
	return nil
}

// An ensemble that is down concerns its names only, also for processes that start meanwhile.
func TestAcceptance214AnEnsembleThatIsDownConcernsItsNamesOnly(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		before := w.connect("a b c", "")
		all := paths(30)
		where := at(before, all)
		w.srvs["b"].Stop()
		start := time.Now()
		after := w.connect("c a b", "")
		require.Equal(t, 5*time.Second, time.Since(start), "a third of the session timeout")
		require.Equal(t, where, at(after, all))
		for _, s := range []*zkshard.Shards{before, after} {
			for _, p := range all {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				l, err := s.NewMutex(p).LockContext(ctx)
				cancel()
				if where[p] == "b" {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					continue
				}
				require.NoError(t, err)
				require.NoError(t, l.Unlock())
			}
		}
		w.srvs["b"].Restart()
		time.Sleep(10 * time.Second)
		for _, p := range all {
			l, err := after.NewMutex(p).LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
		}
		for _, srv := range w.srvs {
			srv.Stop()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.try(ctx, "a b c", "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, srv := range w.srvs {
			srv.Restart()
		}
	})
}

// The two rollouts, step by step.
func TestAcceptance217TheStepsOfAMove(t *testing.T) {
	for _, move := range moves {
		t.Run(fmt.Sprint(move), func(t *testing.T) {
			play(t, 3, func(t *testing.T, w *world) {
				old := w.connect(move[0], "")
				if share(move) {
					require.ErrorContains(t, w.refused(move[1], ""), "needs WithMoving")
				}
				moving := w.connect(move[1], move[0])
				start := time.Now()
				require.ErrorContains(t, w.refused(move[1], ""), "is not open yet")
				require.InDelta(t, 22500*time.Millisecond, time.Since(start), float64(10*time.Millisecond), "one and a half session timeouts")
				second := w.connect(move[0], "") // an old one may still start
				st, err := moving.State(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1, st[0].Moving)
				require.NoError(t, old.Close())
				start = time.Now()
				time.AfterFunc(10*time.Second, func() { _ = second.Close() })
				next := w.connect(move[1], "") // it waits for the other old one
				require.InDelta(t, 10*time.Second, time.Since(start), float64(10*time.Millisecond))
				require.ErrorContains(t, w.refused(move[0], ""), "was replaced by")
				require.NoError(t, moving.Close())
				for _, p := range names {
					l, err := next.NewMutex(p).LockContext(t.Context())
					require.NoError(t, err)
					require.Len(t, l, 1)
					require.NoError(t, l.Unlock())
				}
				// And back.
				w.connect(move[0], move[1])
				require.NoError(t, next.Close())
				back := w.connect(move[0], "")
				require.ErrorContains(t, w.refused(move[1], ""), "was replaced by")
				require.NoError(t, back.Close())
			})
		})
	}
}

// An old process that was cut off from everything, until the move was over, may lock nothing any more.
func TestAcceptance217AnOldProcessThatWasCutOffIsRefused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		p := &process{w: &storm{world: w}, cut: make(map[string]int)}
		old := w.connect("a b", "", zksync.WithDialer(p.dial))
		p.s = old
		heal := []func(){p.cutOff("a"), p.cutOff("b")}
		moving := w.connect("b c", "a b")
		next := w.connect("b c", "")
		require.NoError(t, moving.Close())
		for _, f := range heal {
			f()
		}
		time.Sleep(10 * time.Second)
		for _, p := range paths(20) {
			_, err := old.NewMutex(p).LockContext(t.Context())
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, `the list ["a" "b"] was replaced by ["b" "c"], which is in force now`)
			l, err := next.NewMutex(p).LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
		}
	})
}

// While old processes run somewhere, they are not refused anywhere: not on an ensemble where there is none at the moment.
func TestAcceptance217AnOldProcessThatWasCutOffFromOneEnsembleComesBack(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		p := &process{w: &storm{world: w}, cut: make(map[string]int)}
		old := w.connect("a b", "", zksync.WithDialer(p.dial))
		p.s = old
		heal := p.cutOff("a")
		time.Sleep(time.Minute)
		moving := w.connect("a c", "a b")
		time.Sleep(time.Minute)
		require.NoError(t, moving.Close()) // it looks once more
		heal()
		time.Sleep(time.Minute)
		for _, p := range paths(20) {
			l, err := old.NewMutex(p).LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
		}
	})
}

// Two moves at once: the processes of one might wait for those of the other.
func TestAcceptance218TwoMovesAtOnceAreRefused(t *testing.T) {
	play(t, 3, func(t *testing.T, w *world) {
		first := w.connect("a b", "")
		moving := w.connect("b c", "a b")
		require.ErrorContains(t, w.refused("a c", "a b"), `a move from ["a" "b"] to ["b" "c"] is under way`)
		require.NoError(t, first.Close())
		next := w.connect("b c", "")
		start := time.Now()
		require.ErrorContains(t, w.refused("a b", "b c"), "processes of another move still run")
		require.InDelta(t, 22500*time.Millisecond, time.Since(start), float64(10*time.Millisecond))
		time.AfterFunc(10*time.Second, func() { _ = moving.Close() })
		w.connect("a b", "b c")
		for _, p := range names {
			l, err := next.NewMutex(p).LockContext(t.Context())
			require.NoError(t, err)
			require.NoError(t, l.Unlock())
		}
	})
}
