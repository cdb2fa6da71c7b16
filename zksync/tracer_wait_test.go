package zksync_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// places writes down where waiters stand.
type places struct {
	notes
	began time.Time
}

func (p *places) at(format string, args ...any) {
	p.write("%v: %s", time.Since(p.began), fmt.Sprintf(format, args...))
}

func (p *places) AcquireStart(ctx context.Context, d zksync.AcquireStartData) context.Context {
	p.at("start, %d ahead", d.Position)
	return context.WithValue(ctx, traced{}, "yes")
}

func (p *places) AcquireEnd(_ context.Context, d zksync.AcquireEndData) {
	how := "granted"
	if d.Err != nil {
		how = "failed"
	}
	p.at("%s, %d ahead, %q", how, d.Position, d.Ahead.Name)
}

func (p *places) Wait(ctx context.Context, d zksync.WaitData) {
	if ctx.Value(traced{}) != "yes" || !p.began.IsZero() && d.Waited != time.Since(p.began) {
		panic(fmt.Sprint("a wait of ", d.Waited, " with the context ", ctx))
	}
	p.at("wait, %d ahead of %s, epoch %d", d.Position, d.Node[:strings.LastIndex(d.Node, "/")], d.Epoch)
}

// detections are with and without deadlock detection, with which an acquisition has a context of its own.
var detections = [][]zksync.SessionOption{nil, {zksync.WithDeadlockDetection()}}

// lock locks, in a goroutine of its own, and returns the lease, or nil after an error.
func lock(ctx context.Context, m *zksync.Mutex) <-chan *zksync.Lease {
	got := make(chan *zksync.Lease, 1)
	go func() {
		l, _ := m.LockContext(ctx)
		got <- l
	}()
	synctest.Wait()
	return got
}

func TestAWaitersPlaceIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		first, _ := zksync.NewMutex(srv.Session(t), "/locks/a").LockContext(t.Context())
		second := srv.Session(t)
		leaves, leave := context.WithCancel(t.Context())
		lock(leaves, zksync.NewMutex(second, "/locks/a"))
		p := &places{}
		m := zksync.NewMutex(srv.Session(t, zksync.WithTracer(p)), "/locks/a")
		before := queueAgain(t, srv, m)
		p.take()

		p.began = time.Now()
		got := lock(t.Context(), m)
		time.Sleep(time.Second)
		leave()
		time.Sleep(time.Second)
		require.NoError(t, first.Unlock())
		l := <-got
		require.Equal(t, []string{
			"0s: start, -1 ahead",
			"0s: wait, 2 ahead of /locks/a, epoch 1",
			"1s: wait, 1 ahead of /locks/a, epoch 1",
			`2s: granted, 2 ahead, ""`,
		}, p.take())
		requests := srv.Requests() - before
		require.NoError(t, l.Unlock())

		// Without the tracer it would have sent the same.
		again, _ := zksync.NewMutex(srv.Session(t), "/locks/b").LockContext(t.Context())
		leaves, leave = context.WithCancel(t.Context())
		lock(leaves, zksync.NewMutex(second, "/locks/b"))
		m = zksync.NewMutex(srv.Session(t), "/locks/b")
		before = queueAgain(t, srv, m)
		got = lock(t.Context(), m)
		time.Sleep(time.Second)
		leave()
		time.Sleep(time.Second)
		require.NoError(t, again.Unlock())
		l = <-got
		require.Equal(t, requests, srv.Requests()-before)
		require.NoError(t, l.Unlock())
	})
}

// queueAgain has m queue and leave, so that it lists the directory when it queues again. It returns the number of requests so far.
func queueAgain(t *testing.T, srv *zktest.Server, m *zksync.Mutex) int {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := m.LockContext(ctx)
	require.Error(t, err)
	return srv.Requests()
}

// Goroutines of one process learn the place of the entry with which they wait together, and of the holds that come before theirs.
func TestThePlaceOfEachGoroutineIsTraced(t *testing.T) {
	for _, detects := range detections {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			first, _ := zksync.NewMutex(srv.Session(t), "/locks/a").LockContext(t.Context())
			p := &places{}
			m := zksync.NewMutex(srv.Session(t, append(detects, zksync.WithTracer(p), zksync.WithName("me"))...), "/locks/a", zksync.WithLinger(time.Second))
			p.began = time.Now()
			one, two := lock(t.Context(), m), lock(t.Context(), m)
			require.Equal(t, []string{
				"0s: start, -1 ahead",
				"0s: wait, 1 ahead of /locks/a, epoch 1",
				"0s: start, 1 ahead",
				"0s: wait, 1 ahead of /locks/a, epoch 1",
			}, p.take())
			require.NoError(t, first.Unlock())
			l := <-one
			require.ElementsMatch(t, []string{`0s: granted, 1 ahead, ""`, "0s: wait, 0 ahead of /locks/a, epoch 1"}, p.take())
			three := lock(t.Context(), m)
			require.Equal(t, []string{"0s: start, 0 ahead", "0s: wait, 0 ahead of /locks/a, epoch 1"}, p.take())
			require.NoError(t, l.Unlock())
			l = <-two
			require.Equal(t, []string{`0s: granted, 0 ahead, "me"`}, p.take())

			briefly, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			failed := lock(briefly, m)
			require.Nil(t, <-failed)
			require.Equal(t, []string{
				"0s: start, 0 ahead", "0s: wait, 0 ahead of /locks/a, epoch 1", `1s: failed, 0 ahead, "me"`,
			}, p.take())

			// After a second no hand-over is allowed, so this one queues again.
			other := zksync.NewMutex(srv.Session(t), "/locks/a")
			theirs := lock(t.Context(), other)
			require.NoError(t, l.Unlock())
			their := <-theirs
			require.Equal(t, []string{"1s: wait, 1 ahead of /locks/a, epoch 1"}, p.take())
			require.NoError(t, their.Unlock())
			l = <-three
			require.Equal(t, []string{`1s: granted, 1 ahead, ""`}, p.take())
			require.NoError(t, l.Unlock())
			l = <-lock(t.Context(), m)
			require.Equal(t, []string{"1s: start, 0 ahead", `1s: granted, 0 ahead, ""`}, p.take(), "the place lingers")
			require.NoError(t, l.Unlock())
		})
	}
}

// At the bound a hand-over asks the servers first. It is traced like the others, also for those who come meanwhile.
func TestAHandoverBeyondTheBoundIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p := &places{}
		m := zksync.NewMutex(srv.Session(t, zksync.WithTracer(p), zksync.WithName("me")), "/locks/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		two := lock(t.Context(), m)
		time.Sleep(time.Second)
		srv.Intercept(zktest.On(zktest.GetChildren, "/locks/a").Delay(time.Second))
		p.began = time.Now()
		require.NoError(t, l.Unlock())
		p.take()
		three := lock(t.Context(), m)
		require.Equal(t, []string{"0s: start, -1 ahead"}, p.take())
		time.Sleep(time.Second)
		l = <-two
		synctest.Wait()
		require.ElementsMatch(t, []string{`1s: granted, 0 ahead, "me"`, "1s: wait, 0 ahead of /locks/a, epoch 1"}, p.take())
		require.NoError(t, l.Unlock())
		require.NoError(t, (<-three).Unlock())
	})
}

func TestAFailedWaitKnowsWhoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		host, _ := os.Hostname()
		other := srv.Session(t, zksync.WithName("them"))
		requests := map[string]int{} // without a tracer
		for _, name := range []string{"nothing", "", "mine"} {
			var ends kept[zksync.AcquireEndData]
			s := srv.Session(t, zksync.WithName("session"), zksync.WithTracer(endsTracer{&ends}))
			opts := []zksync.Option{zksync.WithName(name)}
			switch name {
			case "nothing":
				s = srv.Session(t)
			case "":
				opts = nil // the name of the session is not that of the object
			}
			for kind, lock := range locks {
				path := "/locks/" + kind + name
				l, err := lock(t.Context(), other, path)
				require.NoError(t, err)
				time.Sleep(time.Second) // they watch their node
				before := srv.Requests()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err = lock(ctx, s, path, opts...)
				require.ErrorContains(t, err, "held by "+host)
				if name == "nothing" {
					requests[kind] = srv.Requests() - before
				} else {
					require.Equal(t, requests[kind], srv.Requests()-before, path)
					got := ends.take()
					require.Len(t, got, 1)
					require.Equal(t, zksync.AcquireEndData{
						Path: path, Name: name, Kind: got[0].Kind, Position: 1, Err: got[0].Err, Waited: 2 * time.Second,
						Ahead: zksync.Owner{Host: host, PID: os.Getpid(), Name: "them"},
					}, got[0])
				}
				require.NoError(t, l.Unlock())
			}
		}
	})
}

// locks lock a path in each way.
var locks = map[string]func(context.Context, *zksync.Session, string, ...zksync.Option) (*zksync.Lease, error){
	"mutex": func(ctx context.Context, s *zksync.Session, path string, opts ...zksync.Option) (*zksync.Lease, error) {
		return zksync.NewMutex(s, path, opts...).LockContext(ctx)
	},
	"write": func(ctx context.Context, s *zksync.Session, path string, opts ...zksync.Option) (*zksync.Lease, error) {
		return zkrwmutex.New(s, path, opts...).LockContext(ctx)
	},
	"permit": func(ctx context.Context, s *zksync.Session, path string, opts ...zksync.Option) (*zksync.Lease, error) {
		w := zksemaphore.NewWeighted(s, path, 1, opts...)
		return w.AcquireLease(ctx, 1)
	},
	"lead": func(ctx context.Context, s *zksync.Session, path string, opts ...zksync.Option) (*zksync.Lease, error) {
		return zkelection.New(s, path, zkelection.Candidate{ID: "me"}, opts...).Campaign(ctx)
	},
}

// endsTracer keeps the ends.
type endsTracer struct{ *kept[zksync.AcquireEndData] }

func (e endsTracer) AcquireEnd(_ context.Context, d zksync.AcquireEndData) { e.add(d) }

// A tracer that takes its time delays no grant, and is not told of places when the wait is over.
func TestASlowTracerOfPlacesDelaysNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		first, _ := zksync.NewMutex(srv.Session(t), "/locks/a").LockContext(t.Context())
		slow := &slowPlaces{}
		m := zksync.NewMutex(srv.Session(t, zksync.WithTracer(slow)), "/locks/a")
		start := time.Now()
		one, two := lock(t.Context(), m), lock(t.Context(), m)
		require.NoError(t, first.Unlock())
		require.NoError(t, (<-one).Unlock())
		require.NoError(t, (<-two).Unlock())
		require.Zero(t, time.Since(start))
		time.Sleep(3 * time.Hour)
		require.Len(t, slow.take(), 2, "that this process holds the place is no news any more")
	})
}

type slowPlaces struct{ kept[zksync.WaitData] }

func (s *slowPlaces) Wait(_ context.Context, d zksync.WaitData) {
	s.add(d)
	time.Sleep(time.Hour)
}

// Readers hold together, so entries may be ahead of one that is granted.
func TestThePlaceOfAReaderIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, p := zktest.Run(t), &places{began: time.Now()}
		traced, other := srv.Session(t, zksync.WithTracer(p)), srv.Session(t)
		read := func(ctx context.Context, s *zksync.Session) <-chan *zksync.Lease {
			got := make(chan *zksync.Lease, 1)
			m := zkrwmutex.New(s, "/locks/a")
			go func() {
				l, _ := m.RLockContext(ctx)
				got <- l
			}()
			synctest.Wait()
			return got
		}
		m := zkrwmutex.New(traced, "/locks/a")
		theirs := <-read(t.Context(), other)
		l, err := m.TryRLockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"0s: start, -1 ahead", `0s: granted, 1 ahead, ""`}, p.take())
		joined, err := m.RLockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"0s: start, 0 ahead", `0s: granted, 0 ahead, ""`}, p.take(), "it holds together with that one")
		require.NoError(t, joined.Unlock())
		require.NoError(t, l.Unlock())
		require.NoError(t, (<-read(t.Context(), traced)).Unlock())
		require.Equal(t, []string{"0s: start, -1 ahead", `0s: granted, 1 ahead, ""`}, p.take())
		require.NoError(t, theirs.Unlock())
	})
}

// When the last of the writers ahead gives up, it is not known who else has left.
func TestThePlaceOfAReaderBehindWritersIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, p := zktest.Run(t), &places{began: time.Now()}
		m, other, last := zkrwmutex.New(srv.Session(t, zksync.WithTracer(p)), "/locks/a"), srv.Session(t), srv.Session(t)
		l, err := m.TryRLockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		p.take()
		w, err := zkrwmutex.New(other, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		leaves, leave := context.WithCancel(t.Context())
		go func() { _, _ = zkrwmutex.New(last, "/locks/a").LockContext(leaves) }()
		synctest.Wait()
		one, two := make(chan *zksync.Lease, 1), make(chan *zksync.Lease, 1)
		waits := func(got chan *zksync.Lease) {
			go func() {
				l, _ := m.RLockContext(t.Context())
				got <- l
			}()
			synctest.Wait()
		}
		waits(one)
		require.Equal(t, []string{"0s: start, -1 ahead", "0s: wait, 2 ahead of /locks/a, epoch 1"}, p.take())
		leave()
		synctest.Wait()
		waits(two)
		require.Equal(t, []string{"0s: start, -1 ahead"}, p.take())
		require.NoError(t, w.Unlock())
		for _, got := range []<-chan *zksync.Lease{one, two} {
			require.NoError(t, (<-got).Unlock())
		}
		require.Equal(t, []string{`0s: granted, 2 ahead, ""`, `0s: granted, 2 ahead, ""`}, p.take())
	})
}
