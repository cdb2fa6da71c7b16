package zkgroup_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// diary notes when each item was run, and by whom.
type diary struct {
	mu    sync.Mutex
	began time.Time
	runs  map[string][]string // "member at seconds"
	done  map[string]int
	told  []int // the attempts of which WithItemErrors has heard
}

func newDiary() *diary {
	return &diary{began: time.Now(), runs: map[string][]string{}, done: map[string]int{}}
}

// run is a function of Assign, for a member: end decides how a run ends.
func (d *diary) run(id string, end func(item string, runs int) error) func(context.Context, string, *zksync.Lease) error {
	return func(_ context.Context, item string, _ *zksync.Lease) error {
		d.mu.Lock()
		d.runs[item] = append(d.runs[item], id+" "+time.Since(d.began).Round(100*time.Millisecond).String()) // a server of 3.5 closes the connection at a request that it does not know
		n := len(d.runs[item])
		d.mu.Unlock()
		err := end(item, n)
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil {
			d.done[item]++
		}
		return err
	}
}

func (d *diary) errors(item string, attempt int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, attempt)
}

func bad(item string, _ int) error {
	if item == "item/3" {
		return proving.ErrTest
	}
	return nil
}

// It is tried again after 1 s, 2 s, 4 s and so on, up to a minute.
func TestAnItemThatFailsIsTriedAgainAfterAGrowingPauseAndTheOthersAreDone(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		g, d := zkgroup.New(v.Session(), groupPath), newDiary()
		m := joins(v, g, "a", "")
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		require.NoError(t, g.Assign(ctx, m, items(12), d.run("a", bad), zkgroup.WithItemErrors(d.errors)))
		require.Len(t, d.done, 11)
		require.Equal(t, []string{"a 0s", "a 1s", "a 3s", "a 7s", "a 15s", "a 31s", "a 1m3s", "a 2m3s", "a 3m3s"}, d.runs["item/3"])
		require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, d.told)
		require.Len(t, d.runs, 12)
		for item, runs := range d.runs {
			require.True(t, item == "item/3" || len(runs) == 1)
		}
	})
}

// Each item fails three times: at the member that has it first, at the other one after the pause, and at the first one again.
func TestAnItemThatFailsIsTriedAgainElsewhere(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		var mu sync.Mutex
		began, failures, done := time.Now(), map[string][]string{}, map[string]string{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var both sync.WaitGroup
		both.Add(2)
		for _, id := range []string{"a", "b"} {
			g := zkgroup.New(v.Session(), groupPath)
			m := joins(v, g, id, "")
			at := func() string { return id + " " + time.Since(began).String() }
			f := func(ctx context.Context, item string, _ *zksync.Lease) error {
				time.Sleep(time.Until(began.Add(time.Second))) // until both members are there
				mu.Lock()
				defer mu.Unlock()
				if len(failures[item]) < 3 {
					return proving.ErrTest
				}
				done[item] = at()
				return nil
			}
			failed := func(item string, attempt int, err error) {
				mu.Lock()
				defer mu.Unlock()
				failures[item] = append(failures[item], at())
				require.Len(t, failures[item], attempt)
			}
			go func() {
				defer both.Done()
				require.NoError(t, g.Assign(ctx, m, items(8), f, zkgroup.WithItemErrors(failed)))
			}()
		}
		both.Wait()
		require.Len(t, done, 8)
		first := map[string]int{}
		for item, fails := range failures {
			one, other := fails[0][:1], "b"
			first[one]++
			if one == "b" {
				other = "a"
			}
			require.Equal(t, []string{one + " 1s", other + " 2s", one + " 4s"}, fails, item)
			require.Equal(t, other+" 8s", done[item], item)
		}
		require.Len(t, first, 2)
	})
}

// The attempts go on where they were when the member that has failed last is gone.
func TestTheAttemptsOfAnItemAreCountedThroughDeaths(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		d := newDiary()
		late := func(item string, runs int) error {
			if runs == 1 {
				time.Sleep(time.Second / 2) // until then each has heard of the other
			}
			return bad(item, runs)
		}
		sessions := map[string]*zksync.Session{}
		for _, id := range []string{"a", "b"} {
			s := v.Session()
			sessions[id] = s
			g := zkgroup.New(s, groupPath)
			m := joins(v, g, id, "")
			go func() {
				_ = g.Assign(t.Context(), m, items(4)[3:], d.run(id, late), zkgroup.WithItemErrors(d.errors))
			}()
		}
		time.Sleep(2 * time.Second)
		d.mu.Lock()
		runs := d.runs["item/3"]
		last := runs[len(runs)-1][:1]
		d.mu.Unlock()
		dies(v, sessions[last])
		time.Sleep(time.Minute)
		d.mu.Lock()
		defer d.mu.Unlock()
		require.Equal(t, []int{1, 2, 3, 4, 5}, d.told[:5])
	})
}

func TestStopEndsTheAssignOfThisMemberWithItsError(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		a, b := zkgroup.New(v.Session(), groupPath), zkgroup.New(v.Session(), groupPath)
		ma, mb := joins(v, a, "a", ""), joins(v, b, "b", "")
		ctx, cancel := context.WithCancel(t.Context())
		ends := make(chan error, 1)
		go func() { ends <- b.Assign(ctx, mb, items(4), untilEnd) }()
		v.Queued(groupPath+"/zkgroup/working", 1)
		causes := make(chan error, 10)
		err := a.Assign(ctx, ma, []string{"mine", "other"}, func(ctx context.Context, item string, _ *zksync.Lease) error {
			if item == "other" {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil
			}
			return zkgroup.Stop(proving.ErrTest)
		})
		require.ErrorIs(t, err, proving.ErrTest)
		select {
		case cause := <-causes: // if it had begun
			require.ErrorIs(t, cause, proving.ErrTest)
		default:
		}
		v.Quiet()
		require.Empty(t, ends)
		cancel()
		require.NoError(t, <-ends)
	})
}

func TestStopWithoutAnErrorEndsTheAssignOfThisMemberWithNone(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		m := joins(v, g, "a", "")
		for range 2 { // the item is not done
			runs := 0
			require.NoError(t, g.Assign(t.Context(), m, []string{"x"}, func(context.Context, string, *zksync.Lease) error { runs++; return zkgroup.Stop(nil) }))
			require.Equal(t, 1, runs)
		}
	})
}

func TestAMemberHearsItsShareOnceForEachChange(t *testing.T) {
	proving.EachRelease(t, func(t *testing.T, v *proving.Env) {
		type share struct{ got [][]string }
		shares, mu, all := map[string]*share{"a": {}, "b": {}, "c": {}}, sync.Mutex{}, items(12)
		begin := func(id string, list []string) (end func()) {
			g := zkgroup.New(v.Session(), groupPath)
			m := joins(v, g, id, "")
			ctx, cancel := context.WithCancel(t.Context())
			ends := make(chan error, 1)
			go func() {
				ends <- g.Assign(ctx, m, list, untilEnd, zkgroup.WithShare(func(items []string) {
					mu.Lock()
					defer mu.Unlock()
					shares[id].got = append(shares[id].got, items)
				}))
			}()
			return func() { cancel(); require.NoError(t, <-ends) }
		}
		got := func(id string) [][]string { mu.Lock(); defer mu.Unlock(); return slices.Clone(shares[id].got) }
		hears := func(id string, times int) { // a server of 3.5 closes the connection at first, and it takes a while to connect again
			t.Helper()
			v.Eventually(func() bool { return len(got(id)) >= times }, "%s has heard %d times", id, times)
			v.Quiet()
			require.Len(t, got(id), times)
		}
		end := begin("a", all)
		hears("a", 1)
		require.Equal(t, all, got("a")[0])
		endB := begin("b", all)
		hears("a", 2)
		hears("b", 1)
		require.ElementsMatch(t, all, append(got("a")[1], got("b")[0]...))
		require.NotEmpty(t, got("b")[0])
		endC := begin("c", nil)
		hears("c", 1)
		require.Equal(t, [][]string{nil}, got("c"), "it has no items, and hears of that")
		require.Len(t, got("a"), 2)
		endC()
		endB()
		hears("a", 3)
		require.Equal(t, all, got("a")[2])
		end()
		require.Len(t, got("a"), 3)
	})
}

// The servers refuse the watch of the worker's node, once. That ends the Assign, and its node: the next one is not refused.
func TestAnAssignThatTheServersRefuseLeavesNoNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g, d := zkgroup.New(v.Session(), groupPath), newDiary()
		m := joins(v, g, "a", "")
		v.Server.Intercept(zktest.On(zktest.Exists, groupPath+"/zkgroup/working/a").Times(1).Error(zktest.CodeUnimplemented))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorContains(t, g.Assign(ctx, m, []string{"x"}, d.run("a", bad)), "does not know the operation")
		require.NoError(t, g.Assign(ctx, m, []string{"x"}, func(context.Context, string, *zksync.Lease) error { cancel(); return nil }))
	})
}

// A function that calls runtime.Goexit, as the FailNow of a test does, is not run again: that would go on for ever.
func TestAFunctionThatExitsEndsTheAssignOfThisMember(t *testing.T) {
	for name, c := range map[string]struct {
		f    func() error
		hook func()
		says string
	}{
		"the function": {func() error { runtime.Goexit(); return nil }, func() {}, `the item "x": the function called runtime.Goexit`},
		"the hook":     {func() error { return proving.ErrTest }, runtime.Goexit, `the item "x": the function of WithItemErrors: the function called runtime.Goexit`},
	} {
		proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
			g, d := zkgroup.New(v.Session(), groupPath), newDiary()
			m := joins(v, g, "a", "")
			var began time.Time
			beside := make(chan struct{})
			err := g.Assign(t.Context(), m, []string{"x", "y"}, d.run("a", func(item string, _ int) error {
				if item == "y" {
					began = time.Now()
					close(beside)
					time.Sleep(time.Second)
					return nil
				}
				<-beside
				return c.f()
			}), zkgroup.WithItemErrors(func(string, int, error) { c.hook() }))
			require.ErrorContains(t, err, c.says, name)
			require.Equal(t, time.Second, time.Since(began), "it waits for the functions that run")
			require.Equal(t, []string{"a 0s"}, d.runs["x"], name)
			require.Empty(t, v.Children(groupPath+"/zkgroup/items/x"), "its lease is given up")
			require.NoError(t, g.Assign(t.Context(), m, []string{"x"}, d.run("a", func(string, int) error { return zkgroup.Stop(nil) })))
			require.Len(t, d.runs["x"], 2, "the item is not done")
		})
	}
}

type valueKey struct{}

// The context of a run has the values and the deadline of the caller's, and ends with its cause.
func TestARunHasTheContextOfTheCaller(t *testing.T) {
	errEnough := errors.New("enough")
	for name, end := range map[string]func(v *proving.Env, s *zksync.Session, m *zkgroup.Membership, cancel context.CancelCauseFunc) error{
		"cancel": func(_ *proving.Env, _ *zksync.Session, _ *zkgroup.Membership, cancel context.CancelCauseFunc) error {
			cancel(errEnough)
			return errEnough
		},
		"deadline": func(*proving.Env, *zksync.Session, *zkgroup.Membership, context.CancelCauseFunc) error {
			time.Sleep(time.Hour)
			return context.DeadlineExceeded
		},
		"loss": func(v *proving.Env, s *zksync.Session, _ *zkgroup.Membership, _ context.CancelCauseFunc) error {
			v.Server.Expire(s.ID())
			return zksync.ErrLost
		},
		"leave": func(_ *proving.Env, _ *zksync.Session, m *zkgroup.Membership, _ context.CancelCauseFunc) error {
			go func() { _ = m.Leave(context.Background()) }()
			return zksync.ErrReleased
		},
	} {
		t.Run(name, func(t *testing.T) {
			proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				g := zkgroup.New(s, groupPath)
				m := joins(v, g, "a", "")
				deadline := time.Now().Add(time.Hour)
				ctx, stop := context.WithDeadline(context.WithValue(t.Context(), valueKey{}, "of the caller"), deadline)
				defer stop()
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				causes, ends := make(chan error, 9), make(chan error, 1)
				go func() {
					ends <- g.Assign(ctx, m, []string{"x"}, func(ctx context.Context, _ string, l *zksync.Lease) error {
						require.Equal(t, "of the caller", ctx.Value(valueKey{}))
						require.Equal(t, "of the caller", l.Context().Value(valueKey{}))
						at, is := ctx.Deadline()
						require.True(t, is)
						require.Equal(t, deadline, at)
						<-ctx.Done()
						causes <- context.Cause(ctx)
						return ctx.Err()
					})
				}()
				v.Queued(groupPath+"/zkgroup/items/x", 1)
				v.Quiet()
				want := end(v, s, m, cancel)
				require.ErrorIs(t, <-causes, want)
				cancel(nil)
				if err := <-ends; name != "leave" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, zksync.ErrReleased)
				}
			})
		})
	}
}
