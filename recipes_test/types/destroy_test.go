package types

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// destroyed is a type as the tests of Destroy use it. The fields are calls on one object.
type destroyed struct {
	use     func(ctx context.Context) error           // leaves something that fresh can see
	fresh   func(ctx context.Context) (bool, error)   // whether nothing of that is there
	destroy func(ctx context.Context) error           // of the object
	holds   func(ctx context.Context) (func(), error) // uses the object until the function is called; nil for a type that has no such use
	word    string                                    // of such a use, in the error
}

// ruins are the types that have a Destroy.
var ruins = map[string]func(s *zksync.Session, path string) destroyed{
	"map": func(s *zksync.Session, path string) destroyed {
		m := zkmap.New[string, int](s, path)
		return destroyed{destroy: m.Destroy,
			use:   func(ctx context.Context) error { return m.Store(ctx, "k", 1) },
			fresh: func(ctx context.Context) (bool, error) { _, ok, err := m.Load(ctx, "k"); return !ok, err },
		}
	},
	"set": func(s *zksync.Session, path string) destroyed {
		m := zkmap.NewSet[string](s, path)
		return destroyed{destroy: m.Destroy,
			use:   func(ctx context.Context) error { _, err := m.Add(ctx, "k"); return err },
			fresh: func(ctx context.Context) (bool, error) { ok, err := m.Contains(ctx, "k"); return !ok, err },
		}
	},
	"queue": func(s *zksync.Session, path string) destroyed {
		q := zkqueue.New[int](s, path)
		return destroyed{destroy: q.Destroy, word: "of its elements are being delivered",
			use:   func(ctx context.Context) error { return q.Put(ctx, 1) },
			fresh: func(ctx context.Context) (bool, error) { n, err := q.Len(ctx); return n == 0, err },
			holds: func(ctx context.Context) (func(), error) {
				d, err := q.Receive(ctx)
				return func() { _ = d.Nack(ctx) }, err
			},
		}
	},
	"number": func(s *zksync.Session, path string) destroyed {
		n := zkatomic.NewInt64(s, path)
		return destroyed{destroy: n.Destroy,
			use:   func(ctx context.Context) error { _, err := n.Add(ctx, 1); return err },
			fresh: func(ctx context.Context) (bool, error) { v, err := n.Load(ctx); return v == 0, err },
		}
	},
	"value": func(s *zksync.Session, path string) destroyed {
		x := zkatomic.NewValue[string](s, path)
		return destroyed{destroy: x.Destroy,
			use:   func(ctx context.Context) error { return x.Store(ctx, "x") },
			fresh: func(ctx context.Context) (bool, error) { _, ok, err := x.Load(ctx); return !ok, err },
		}
	},
	"sequence": func(s *zksync.Session, path string) destroyed {
		q := zkatomic.NewSequence(s, path, zkatomic.WithBlock(100))
		return destroyed{destroy: q.Destroy,
			use:   func(ctx context.Context) error { _, err := q.Next(ctx); return err },
			fresh: func(ctx context.Context) (bool, error) { st, err := q.State(ctx); return st.Last == 0, err },
		}
	},
	"promise": func(s *zksync.Session, path string) destroyed {
		p := zkonce.NewPromise[int](s, path)
		return destroyed{destroy: p.Destroy,
			use:   func(ctx context.Context) error { _, err := p.Complete(ctx, 1); return err },
			fresh: func(ctx context.Context) (bool, error) { return p.Complete(ctx, 2) },
		}
	},
	"once": func(s *zksync.Session, path string) destroyed {
		o := zkonce.New(s, path)
		return destroyed{destroy: o.Destroy, word: "of its calls run the function, or wait",
			use:   func(ctx context.Context) error { _, err := o.DoContext(ctx, nothing); return err },
			fresh: func(ctx context.Context) (bool, error) { done, err := o.IsDone(ctx); return !done, err },
			holds: func(ctx context.Context) (func(), error) {
				begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = o.DoContext(ctx, func(context.Context) ([]byte, error) { close(begun); <-end; return nil, nil })
				}()
				<-begun
				return func() { close(end); <-ended }, nil
			},
		}
	},
	"latch": func(s *zksync.Session, path string) destroyed {
		l, ephemeral := zklatch.New(s, path, 2), zklatch.New(s, path, 2, zklatch.WithEphemeral())
		return destroyed{destroy: l.Destroy, word: "of its events are those of sessions",
			use:   l.CountDown,
			fresh: func(ctx context.Context) (bool, error) { n, err := l.Count(ctx); return n == 2, err },
			holds: func(ctx context.Context) (func(), error) {
				return func() { _ = s.Close() }, ephemeral.CountDown(ctx)
			},
		}
	},
	"phaser": func(s *zksync.Session, path string) destroyed {
		p := zkphaser.New(s, path)
		return destroyed{destroy: p.Destroy, word: "of its parties are registered",
			use: func(ctx context.Context) error { return p.ForceTermination(ctx) },
			fresh: func(ctx context.Context) (bool, error) {
				ended, err := p.Terminated(ctx)
				return !ended, err
			},
			holds: func(ctx context.Context) (func(), error) {
				_, err := p.Register(ctx)
				return func() { _, _ = p.ArriveAndDeregister(ctx) }, err
			},
		}
	},
}

func nothing(context.Context) ([]byte, error) { return []byte("done"), nil }

const ruin = "/ruin/x"

func TestAcceptance182DestroyRemovesAllNodesAndTheNextUseMakesThemAgain(t *testing.T) {
	for name, made := range ruins {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				a, b := made(v.Session(), ruin), made(v.Session(), ruin)
				require.NoError(t, a.destroy(t.Context()), "there is nothing")
				require.False(t, v.Exists("/ruin"), "it makes nothing")
				require.NoError(t, a.use(t.Context()))
				require.NoError(t, b.destroy(t.Context()), "an object that is idle is no use")
				require.False(t, v.Exists(ruin))
				for range 2 { // the first may be broken
					if fresh, err := a.fresh(t.Context()); err == nil {
						require.True(t, fresh, "of the old object")
						break
					} else {
						require.ErrorIs(t, err, zksync.ErrBroken)
					}
				}
				fresh, err := made(v.Session(), ruin).fresh(t.Context())
				require.NoError(t, err)
				require.True(t, fresh || name == "promise", "of a new object")
				if name != "promise" {
					require.NoError(t, b.use(t.Context()))
				}
				fresh, err = b.fresh(t.Context())
				require.NoError(t, err)
				require.False(t, fresh)
				require.NoError(t, b.destroy(t.Context()))
				require.False(t, v.Exists(ruin))
			})
		})
	}
}

func TestAcceptance183DestroyOfWhatIsInUseNamesWhoAndRemovesNothing(t *testing.T) {
	for name, made := range ruins {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				a, b := made(v.Session(zksync.WithName("worker-7")), ruin), made(v.Session(), ruin)
				if a.holds == nil {
					t.Skip("nothing of it is in use between calls")
				}
				if name == "queue" {
					require.NoError(t, b.use(t.Context()))
				}
				end, err := a.holds(t.Context())
				require.NoError(t, err)
				err = b.destroy(t.Context())
				require.ErrorIs(t, err, zksync.ErrMisuse)
				require.ErrorContains(t, err, "is in use; 1 "+a.word)
				require.ErrorContains(t, err, "worker-7")
				require.ErrorContains(t, err, ruin)
				end()
				require.NoError(t, b.destroy(t.Context()))
				require.False(t, v.Exists(ruin))
			})
		})
	}
}

func TestAcceptance184ThePathOfAnotherTypeIsNotDestroyed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		for name, made := range ruins {
			for other, of := range ruins {
				path := fmt.Sprintf("/%s/%s", name, other)
				if name == other {
					continue
				}
				require.NoError(t, made(s, path).use(t.Context()))
				before := v.Server.Contents(path)
				err := of(s, path).destroy(t.Context())
				require.ErrorIs(t, err, zksync.ErrMisuse, path)
				require.Equal(t, before, v.Server.Contents(path))
			}
		}
	})
}

func TestAcceptance185DestroyIsMadeOnceWhateverBecomesOfItsRequests(t *testing.T) {
	for name, made := range ruins {
		t.Run(name, func(t *testing.T) {
			proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
				a, b := made(v.Session(), ruin), made(v.Session(), ruin)
				require.NoError(t, b.use(t.Context()))
				return func(story string) {
					require.NoError(t, a.destroy(t.Context()), story)
					// Whatever arrives late now meets the next incarnation.
					again := made(v.Session(), ruin)
					require.NoError(t, again.use(t.Context()), story)
					time.Sleep(time.Minute)
					fresh, err := made(v.Session(), ruin).fresh(t.Context())
					require.NoError(t, err)
					require.False(t, fresh, story)
				}
			})
		})
	}
}

// The request of a change is held until the object was destroyed, and has the same versions again.
func TestAcceptance186AChangeOfADestroyedObjectDoesNotReachTheNextOne(t *testing.T) {
	for name, loadsOnly := range map[string]bool{"of a session that has changed it": false, "of a session that has only read it": true} {
		for nth := 1; nth <= 2; nth++ {
			t.Run(fmt.Sprint(name, nth), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ctx := t.Context()
					late, s := v.Session(), v.Session()
					n, m := zkatomic.NewInt64(late, "/number"), zkmap.New[string, int](late, "/map")
					x, y := zkatomic.NewInt64(s, "/number"), zkmap.New[string, int](s, "/map")
					change := func(by int) {
						for range 5 {
							_, err := x.Add(ctx, int64(by))
							require.NoError(t, err)
							_, err = y.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + by, true, nil })
							require.NoError(t, err)
						}
					}
					change(1)
					_, err := n.Load(ctx)
					require.NoError(t, err)
					_, _, err = m.Load(ctx, "k")
					require.NoError(t, err)
					if !loadsOnly {
						require.NoError(t, n.Store(ctx, 5))
						require.NoError(t, m.Store(ctx, "other", 1))
					}
					held := v.Server.Intercept(zktest.On(zktest.Multi, "**").Of(late.ID()).Nth(nth).Times(2).Hold())
					adds := proving.Waits(ctx, func(ctx context.Context) error { _, err := n.Add(ctx, 1); return err })
					v.Quiet()
					updates := proving.Waits(ctx, func(ctx context.Context) error {
						_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil })
						return err
					})
					v.Quiet()
					require.NoError(t, x.Destroy(ctx))
					require.NoError(t, y.Destroy(ctx))
					change(10)
					if !loadsOnly {
						require.NoError(t, x.Store(ctx, 50))
					}
					held.Remove()
					held.Release()
					<-adds.Done
					<-updates.Done
					for what, err := range map[string]error{"number": adds.Err, "map": updates.Err} {
						require.True(t, err == nil || errors.Is(err, zksync.ErrBroken), "%s: %v", what, err)
					}
					sum, err := x.Load(ctx)
					require.NoError(t, err)
					got, _, err := y.Load(ctx, "k")
					require.NoError(t, err)
					require.Contains(t, []int64{50, 51}, sum, "number")
					require.Contains(t, []int{50, 51}, got, "map")
				})
			})
		}
	}
}

// An earlier version gave the record no name for its life: its writers are in the directory itself.
func TestAnObjectOfAnEarlierVersionIsUsedAndDestroyed(t *testing.T) {
	for name, made := range ruins {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				require.NoError(t, made(s, ruin).use(t.Context()))
				require.NoError(t, s.Close())
				for _, record := range v.Server.Children(ruin) {
					writers := ruin + "/" + record + "/writers"
					if v.Exists(writers) && v.Data(writers) != "" {
						v.Server.Delete(writers + "/" + v.Data(writers))
						v.Server.Set(writers, nil)
					}
				}
				a, b := made(v.Session(), ruin), made(v.Session(), ruin)
				fresh, err := a.fresh(t.Context())
				require.NoError(t, err)
				require.False(t, fresh)
				require.NoError(t, a.use(t.Context()))
				require.NoError(t, b.destroy(t.Context()))
				require.False(t, v.Exists(ruin))
			})
		})
	}
}
