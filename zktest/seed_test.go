package zktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// heardInOrder returns the order in which three clients hear of two changes, and when.
func heardInOrder(t *testing.T, opts ...zktest.Option) (order string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, opts...)
		srv.Create("/a", nil, 0, 0)
		srv.Create("/b", nil, 0, 0)
		start := time.Now()
		heard := make(chan string, 6)
		for i := range 3 {
			conn := srv.Connect(t, 10*time.Second)
			_, _, a, err := conn.GetW("/a")
			require.NoError(t, err)
			_, _, b, err := conn.GetW("/b")
			require.NoError(t, err)
			go func() {
				for range 2 {
					var e zk.Event
					select {
					case e = <-a:
						a = nil // the client closes it
					case e = <-b:
						b = nil
					}
					heard <- fmt.Sprintf("%d hears of %s at %v\n", i, e.Path, time.Since(start))
				}
			}()
		}
		srv.Set("/a", nil)
		srv.Set("/b", nil)
		var lines []string
		for range 6 {
			lines = append(lines, <-heard)
		}
		for i := range 3 {
			own := slices.Clone(lines)
			own = slices.DeleteFunc(own, func(l string) bool { return !strings.HasPrefix(l, fmt.Sprint(i)) })
			require.Contains(t, own[0], "/a", "what goes to one client stays in order")
			require.Contains(t, own[1], "/b")
		}
		order = strings.Join(lines, "")
	})
	return order
}

func TestASeedDecidesInWhichOrderClientsHear(t *testing.T) {
	firsts := map[byte]bool{}
	for seed := range uint64(20) {
		opts := []zktest.Option{zktest.WithReordering(100 * time.Millisecond), zktest.WithSeed(seed)}
		order := heardInOrder(t, opts...)
		require.Equal(t, order, heardInOrder(t, opts...), "the same seed, the same instants")
		firsts[order[0]] = true
	}
	require.Len(t, firsts, 3, "each client is the first one with some seed")
}

func TestTheSeedMayComeFromTheEnvironment(t *testing.T) {
	t.Setenv(zktest.SeedEnv, "4711")
	srv := zktest.Run(t, zktest.WithReordering(time.Millisecond))
	require.EqualValues(t, 4711, srv.Seed())
	require.EqualValues(t, 7, zktest.Run(t, zktest.WithReordering(time.Millisecond), zktest.WithSeed(7)).Seed())
	require.Zero(t, zktest.Run(t).Seed(), "nothing is drawn")
	t.Setenv(zktest.SeedEnv, "xyz")
	says := `zktest: ZKTEST_SEED="xyz" is no seed: want a number from 0 to 18446744073709551615`
	require.PanicsWithValue(t, says, func() { zktest.Start(zktest.WithReordering(1)) })
	require.PanicsWithValue(t, says, func() { zktest.StartEnsemble(3, zktest.WithReordering(1)) })
	tb := &fakeTB{TB: t}
	require.PanicsWithValue(t, "fatal", func() { zktest.Run(tb, zktest.WithReordering(1)) }, "t fails")
	require.PanicsWithValue(t, "fatal", func() { zktest.RunEnsemble(tb, 3, zktest.WithReordering(1)) })
	require.Equal(t, []string{says, says}, tb.errors)
}

func TestAFailedTestTellsItsSeed(t *testing.T) {
	for _, failed := range []bool{false, true} {
		tb := &loggingTB{TB: t, failed: failed}
		zktest.Run(tb, zktest.WithReordering(time.Millisecond), zktest.WithSeed(99))
		zktest.RunEnsemble(tb, 3, zktest.WithReordering(time.Millisecond), zktest.WithSeed(99))
		for _, f := range tb.cleanups {
			f()
		}
		require.Equal(t, failed, strings.Count(tb.log, "seed 99; ZKTEST_SEED=99") == 2, tb.log)
	}
}

// loggingTB is a test whose outcome and messages are ours.
type loggingTB struct {
	testing.TB
	failed   bool
	log      string
	cleanups []func()
}

func (l *loggingTB) Failed() bool                    { return l.failed }
func (l *loggingTB) Cleanup(f func())                { l.cleanups = append(l.cleanups, f) }
func (l *loggingTB) Logf(format string, args ...any) { l.log += fmt.Sprintf(format, args...) }

func TestLocksAreExclusiveInEveryOrderOfReplies(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithReordering(50*time.Millisecond), zktest.WithSeed(seed))
			holding, grants := 0, 0
			done := make(chan error, 4)
			for range 4 {
				m := zksync.NewMutex(srv.Session(t), "/locks/a")
				go func() {
					for range 3 {
						l, err := m.LockContext(t.Context())
						if err != nil {
							done <- err
							return
						}
						holding++
						grants++
						if holding != 1 {
							t.Errorf("%d holders with seed %d", holding, seed)
						}
						time.Sleep(10 * time.Millisecond)
						holding--
						if err := l.Unlock(); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range 4 {
				require.NoError(t, <-done)
			}
			require.Equal(t, 12, grants)
		})
	}
}
