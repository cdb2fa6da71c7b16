//go:build unix

package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// What begins when the wait is over must not end with the time for waiting.
func TestAWaitThatIsOverEndsNothingAnyMore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	a := &app{stdout: io.Discard, stderr: io.Discard}
	a.servers, a.timeout = s.addr, positiveDuration(defaultTimeout)
	o := lockOptions{path: "/a", wait: time.Since(started) + 3*time.Second}
	require.NoError(t, a.waiting(context.Background(), o, "test", func(w *vigil) error {
		require.NoError(t, w.end())
		<-time.After(time.Until(started.Add(o.wait)) + 50*time.Millisecond) // by when the wait, in real time, would be over
		return w.ctx.Err()
	}))
	o.wait = time.Since(started) + 200*time.Millisecond
	var coded *exitError
	require.ErrorAs(t, a.waiting(context.Background(), o, "test", func(w *vigil) error {
		<-w.ctx.Done()
		return w.end()
	}), &coded)
	require.Equal(t, exitNotObtained, coded.code)
}

// One release may not have everybody who tells about waiting read the whole queue.
func TestTellingAboutWaitingMakesNoHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		held, err := zksync.NewMutex(srv.Session(t), "/a").LockContext(t.Context())
		require.NoError(t, err)
		const waiters = 20
		var told [waiters]buffer
		for i := range waiters {
			s := srv.Session(t)
			background(t, func(ctx context.Context) { _, _ = zksync.NewMutex(s, "/a").LockContext(ctx) })
			synctest.Wait()
			a := &app{stderr: &told[i]}
			a.verbosity = 1
			t.Cleanup(a.narrate(s, lockOptions{path: "/a"}))
			time.Sleep(10 * time.Second)
			require.Contains(t, told[i].String(), wording.InLine(i+1))
		}
		time.Sleep(time.Minute)
		idle := srv.Requests()
		time.Sleep(3 * time.Second)
		idle = srv.Requests() - idle
		before := srv.Requests()
		require.NoError(t, held.Unlock())
		time.Sleep(3 * time.Second)
		require.Less(t, srv.Requests()-before-idle, 200)
		require.Contains(t, told[1].String(), "1st in line")
	})
}

// The entry ahead may leave between the read of the queue and the watch of that entry.
func TestAWaiterHearsOfItsPlaceThoughTheOneAheadLeavesDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, err := zksync.NewMutex(srv.Session(t), "/a").LockContext(t.Context())
		require.NoError(t, err)
		ahead, leave := context.WithCancel(t.Context())
		first, second := srv.Session(t), srv.Session(t)
		background(t, func(context.Context) { _, _ = zksync.NewMutex(first, "/a").LockContext(ahead) })
		synctest.Wait()
		background(t, func(ctx context.Context) { _, _ = zksync.NewMutex(second, "/a").LockContext(ctx) })
		synctest.Wait()
		var told buffer
		a := &app{stderr: &told}
		a.verbosity = 1
		look := srv.Intercept(zktest.On(zktest.GetData, "/a/*").Of(second.ID()).Nth(4).Hold()) // the last read of the first look sets the watch of the entry just ahead
		t.Cleanup(a.narrate(second, lockOptions{path: "/a"}))
		time.Sleep(time.Second)
		require.Equal(t, 1, look.Held())
		leave()
		synctest.Wait()
		look.Release()
		time.Sleep(2 * narrateEvery)
		require.Contains(t, told.String(), "waiting for /a: 1st in line")
	})
}
