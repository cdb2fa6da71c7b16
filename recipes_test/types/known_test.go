package types

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// knower is an object that keeps in memory what it has found out. The fields are calls on one object.
type knower struct {
	settle  func(ctx context.Context) error         // has the outcome, so that others can find it out
	known   func(ctx context.Context) (bool, error) // whether the outcome is still there, for a call that finds it out
	begins  func(ctx context.Context) (bool, error) // whether the object begins again
	destroy func(ctx context.Context) error
	base    string // the node that it reads and watches, below the path
}

var knowers = map[string]func(s *zksync.Session, path string) knower{
	"promise": func(s *zksync.Session, path string) knower {
		p := zkonce.NewPromise[int](s, path)
		return knower{destroy: p.Destroy, base: "/zkonce.Promise",
			settle: func(ctx context.Context) error { _, err := p.Complete(ctx, 1); return err },
			known:  func(ctx context.Context) (bool, error) { v, err := p.Wait(ctx); return v == 1, err },
			begins: func(ctx context.Context) (bool, error) { return p.Complete(ctx, 2) },
		}
	},
	"latch": func(s *zksync.Session, path string) knower {
		l := zklatch.New(s, path, 1)
		return knower{destroy: l.Destroy, settle: l.CountDown,
			known:  func(ctx context.Context) (bool, error) { err := l.Wait(ctx); return err == nil, err },
			begins: func(ctx context.Context) (bool, error) { n, err := l.Count(ctx); return n == 1, err },
		}
	},
	"once": func(s *zksync.Session, path string) knower {
		o := zkonce.New(s, path)
		return knower{destroy: o.Destroy, base: "/result",
			settle: func(ctx context.Context) error { _, err := o.DoContext(ctx, nothing); return err },
			known:  o.IsDone,
			begins: func(ctx context.Context) (bool, error) { done, err := o.IsDone(ctx); return !done, err },
		}
	},
	"sequence": func(s *zksync.Session, path string) knower {
		q := zkatomic.NewSequence(s, path, zkatomic.WithBlock(1000))
		next := func(ctx context.Context) (int64, error) { return q.Next(ctx) }
		return knower{destroy: q.Destroy, base: "/zkatomic.Sequence",
			settle: func(ctx context.Context) error { _, err := next(ctx); return err },
			known:  func(ctx context.Context) (bool, error) { n, err := next(ctx); return n != 1, err },
			begins: func(ctx context.Context) (bool, error) { n, err := next(ctx); return n == 1, err },
		}
	},
}

// eachKnower plays a test with an object whose outcome is known, in a session of its own, and another object.
func eachKnower(t *testing.T, play func(t *testing.T, v *proving.Env, s *zksync.Session, a, other knower)) {
	for name, made := range knowers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session(zksync.WithTimeout(10 * time.Second))
				a, other := made(s, ruin), made(v.Session(), ruin)
				require.NoError(t, other.settle(t.Context()))
				if name == "sequence" {
					require.NoError(t, a.settle(t.Context())) // it has a block
				}
				knows(t, a)
				knows(t, a)
				v.Costs(0, func() { knows(t, a) })
				play(t, v, s, a, other)
			})
		})
	}
}

func knows(t *testing.T, a knower) {
	t.Helper()
	start := time.Now()
	known, err := a.known(t.Context())
	require.NoError(t, err)
	require.True(t, known)
	require.Zero(t, time.Since(start))
}

// starts checks that the next call begins again: not at a second one.
func starts(t *testing.T, a knower, why string) {
	t.Helper()
	start := time.Now()
	again, err := a.begins(t.Context())
	require.NoError(t, err, why)
	require.True(t, again, why)
	require.Zero(t, time.Since(start), why)
}

func TestAnObjectThatKnowsTheOutcomeBeginsAgainAfterADestroyElsewhere(t *testing.T) {
	eachKnower(t, func(t *testing.T, v *proving.Env, s *zksync.Session, a, other knower) {
		require.NoError(t, other.destroy(t.Context()))
		synctest.Wait() // the event arrives
		starts(t, a, "")
	})
}

// It has written the outcome, so nothing watches that until its next call.
func TestAnObjectThatHasSettledTheOutcomeBeginsAgainAfterADestroyElsewhere(t *testing.T) {
	for name, made := range knowers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				a, other := made(v.Session(), ruin), made(v.Session(), ruin)
				require.NoError(t, a.settle(t.Context()))
				require.NoError(t, other.destroy(t.Context()))
				starts(t, a, "")
			})
		})
	}
}

// The Destroy happens while the object has no connection: what it knows stays until it has one again, and not longer.
func TestWhatAnObjectKnowsStaysWithoutAConnectionAndNotLonger(t *testing.T) {
	for _, away := range []float64{0.5, 3} { // of the session timeout: in the same session, and in the next one
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			eachKnower(t, func(t *testing.T, v *proving.Env, s *zksync.Session, a, other knower) {
				allow := v.Server.Refuse() // new connections
				v.Server.Disconnect(s.ID())
				require.NoError(t, other.destroy(t.Context()))
				for range 4 {
					time.Sleep(time.Duration(away * float64(s.Timeout()) / 4))
					require.NotEqual(t, zksync.Connected, s.State())
					knows(t, a)
				}
				allow()
				v.Connected(s)
				synctest.Wait()
				starts(t, a, "connected again")
			})
		})
	}
}

func TestWhatAnObjectKnowsIsAskedOnceAfterALostConnection(t *testing.T) {
	for what, cost := range map[string]int{"disconnect": 1, "expire": 2} { // a sync: the server of the next session may lag
		t.Run(what, func(t *testing.T) {
			eachKnower(t, func(t *testing.T, v *proving.Env, s *zksync.Session, a, other knower) {
				if what == "expire" {
					v.Server.Expire(s.ID())
				} else {
					v.Server.Disconnect(s.ID())
				}
				v.Later()
				v.Connected(s)
				most := cost
				if a.base == "/result" && what == "expire" {
					most++ // whether the path belongs to another type
				}
				v.Costs(most, func() { knows(t, a) })
				v.Costs(0, func() { knows(t, a) })
				require.NoError(t, other.destroy(t.Context()))
				synctest.Wait()
				starts(t, a, "it watches again")
			})
		})
	}
}

// The connection breaks, and there is no other, while the object asks whether what it knows still holds.
func TestAnObjectAnswersWhenItsQuestionIsLostWithTheConnection(t *testing.T) {
	eachKnower(t, func(t *testing.T, v *proving.Env, s *zksync.Session, a, _ knower) {
		v.Server.Disconnect(s.ID())
		v.Later()
		v.Connected(s)
		held := v.Server.Intercept(zktest.On(zktest.GetData, ruin+a.base).Of(s.ID()).Hold().Nth(1))
		asks := proving.Waits(t.Context(), func(ctx context.Context) error {
			known, err := a.known(ctx)
			require.True(t, known)
			return err
		})
		require.NoError(t, held.WaitHeld(t.Context()))
		require.True(t, asks.Pending())
		allow := v.Server.Refuse()
		defer allow()
		v.Server.Disconnect(s.ID())
		time.Sleep(10 * time.Millisecond)
		require.False(t, asks.Pending())
		require.NoError(t, asks.Err)
		require.NotEqual(t, zksync.Connected, s.State())
	})
}

func TestNothingIsLeftOfWhatAnObjectKnowsAfterClose(t *testing.T) {
	for name, made := range knowers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				require.NoError(t, made(v.Session(), ruin).settle(t.Context()))
				v.Quiet()
				watches, goroutines := v.Server.Watches(), v.Goroutines()
				s := v.Session()
				a := made(s, ruin)
				require.NoError(t, a.settle(t.Context()))
				knows(t, a)
				require.Greater(t, v.Server.Watches(), watches)
				require.NoError(t, s.Close())
				_, err := a.known(t.Context())
				require.ErrorIs(t, err, zksync.ErrClosed)
				v.GoroutinesBack(goroutines)
				require.Equal(t, watches, v.Server.Watches())
			})
		})
	}
}

func TestNoWatchIsLeftOfObjectsThatAreNotUsedAnyMore(t *testing.T) {
	for name, made := range knowers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				used := made(s, ruin)
				settled := func(a knower) {
					require.NoError(t, a.settle(t.Context()))
					knows(t, a)
				}
				settled(used)
				v.Quiet()
				goroutines := v.Goroutines()
				for i := range 200 {
					settled(made(s, fmt.Sprint(ruin, i)))
					if i%50 == 49 {
						runtime.GC()
					}
				}
				v.Quiet()
				require.Less(t, v.Server.Watches(), 70)
				v.GoroutinesBack(goroutines)
				v.Costs(0, func() { knows(t, used) })
			})
		})
	}
}

// A channel of Done that is closed stays closed; the next call returns one of the next latch or promise.
func TestDoneOfADestroyedObjectIsThatOfTheNextOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, s, other := t.Context(), v.Session(), v.Session()
		p, l := zkonce.NewPromise[int](s, "/p"), zklatch.New(s, "/l", 1)
		p2, l2 := zkonce.NewPromise[int](other, "/p"), zklatch.New(other, "/l", 1)
		sets := func() {
			first, err := p2.Complete(ctx, 1)
			require.NoError(t, err)
			require.True(t, first)
			require.NoError(t, l2.CountDown(ctx))
			v.Quiet()
		}
		pd, ld := p.Done(), l.Done()
		v.Quiet()
		sets()
		_, err := p.Wait(ctx)
		require.NoError(t, err)
		require.NoError(t, l.Wait(ctx))
		require.NoError(t, p2.Destroy(ctx))
		require.NoError(t, l2.Destroy(ctx))
		v.Quiet()
		require.True(t, proving.IsClosed(pd) && proving.IsClosed(ld))
		pd, ld = p.Done(), l.Done()
		v.Quiet()
		require.False(t, proving.IsClosed(pd) || proving.IsClosed(ld))
		sets()
		require.True(t, proving.IsClosed(pd) && proving.IsClosed(ld))
	})
}

// The server of the next session does not know yet what the object knows.
func TestWhatAnObjectKnowsStaysInASessionAtAServerThatLags(t *testing.T) {
	for name, made := range knowers {
		t.Run(name, func(t *testing.T) {
			proving.AmongMembers(t, 4, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				s := e.SessionAt(t, 1)
				zkonce.NewPromise[int](s, "/other").Done() // so that the next session sends something at once, and no sync
				time.Sleep(time.Second)
				catchUp := e.Lag(0)
				a := made(s, ruin)
				require.NoError(t, a.settle(t.Context()))
				known, err := a.known(t.Context())
				require.NoError(t, err)
				require.True(t, known)
				proving.RenewAtLagging(t, e, s)
				asks := proving.Waits(t.Context(), func(ctx context.Context) error {
					known, err := a.known(ctx)
					require.True(t, known)
					return err
				})
				time.Sleep(time.Second)
				catchUp()
				<-asks.Done
				require.NoError(t, asks.Err)
				if name == "sequence" {
					st, err := zkatomic.NewSequence(s, ruin).State(t.Context())
					require.NoError(t, err)
					require.EqualValues(t, 1000, st.Last, "it still has its block")
				}
			})
		})
	}
}

// The sequence was used again before the object that has a block of the old one gives another number.
func TestNumbersOfADestroyedSequenceAreNotMixedWithThoseOfTheNextOne(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		a, b := zkatomic.NewSequence(v.Session(), ruin, zkatomic.WithBlock(10)), zkatomic.NewSequence(v.Session(), ruin, zkatomic.WithBlock(10))
		gives := func(q *zkatomic.Sequence, want ...int64) {
			t.Helper()
			for _, want := range want {
				n, err := q.Next(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, n)
			}
		}
		gives(a, 1)
		v.Costs(1, func() { gives(a, 2) }, "it begins to watch the sequence")
		v.Costs(0, func() { gives(a, 3, 4, 5, 6, 7, 8, 9, 10) })
		v.Costs(1, func() { gives(a, 11, 12, 13) }, "the next block; it watches already")
		gives(b, 21, 22)
		require.NoError(t, b.Destroy(t.Context()))
		gives(b, 1, 2)
		synctest.Wait()
		gives(a, 11, 12)
		gives(b, 3, 4)
		single := zkatomic.NewSequence(v.Session(), ruin)
		gives(single, 21)
		v.Costs(2, func() { gives(single, 22, 23) }, "a block of one is not watched")
	})
}
