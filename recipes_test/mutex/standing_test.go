package mutex_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// heldHere is what an error says of a holder of this process in another session.
func heldHere(d time.Duration) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("held by %s pid %d for %v", host, os.Getpid(), d)
}

// lines are the calls that wait in a line behind the holder of proving.LockPath, and the name of the call.
var lines = map[string]struct {
	hold, wait func(s *zksync.Session) func(context.Context) (*zksync.Lease, error)
	op, place  string
}{
	"Mutex": {mutex, mutex, "zksync: lock", "1st in line, "},
	"reentrant.Mutex": {mutex, func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
		return reentrant.NewMutex(zksync.NewMutex(s, proving.LockPath)).LockContext
	}, "reentrant: lock", "1st in line, "},
	"RWMutex, writing": {reader, writer, "zkrwmutex: lock", "1st in line, "},
	"RWMutex, reading": {writer, reader, "zkrwmutex: read-lock", "1st in line, "},
	"reentrant.RWMutex": {writer, func(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
		return reentrant.NewRWMutex(zkrwmutex.New(s, proving.LockPath)).RLockContext
	}, "reentrant: read-lock", "1st in line, "},
	"MultiLock":               {mutex, multi, "zksync: lock", "1st in line, "},
	"Weighted":                {permits, permits, "zksemaphore: acquire", ""},
	"Election":                {campaign, campaign, "zkelection: campaign", "1st in line, "},
	"Mutex with a lock delay": {delayedLock, delayedLock, "zksync: lock", "1st in line, "},
}

func mutex(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	return zksync.NewMutex(s, proving.LockPath).LockContext
}

func delayedLock(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	return zksync.NewMutex(s, proving.LockPath, zksync.WithLockDelay(time.Second)).LockContext
}

func writer(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	return zkrwmutex.New(s, proving.LockPath).LockContext
}

func reader(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	return zkrwmutex.New(s, proving.LockPath).RLockContext
}

func permits(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	w := zksemaphore.NewWeighted(s, proving.LockPath, 2)
	return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 2) }
}

func campaign(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	return zkelection.New(s, proving.LockPath, zkelection.Candidate{ID: "me"}).Campaign
}

func multi(s *zksync.Session) func(context.Context) (*zksync.Lease, error) {
	m := zksync.MultiLock(zksync.NewMutex(s, proving.LockPath))
	return func(ctx context.Context) (*zksync.Lease, error) {
		ls, err := m.LockContext(ctx)
		if err != nil {
			return nil, err
		}
		return ls[0], nil
	}
}

func TestTheErrorOfAWaitThatEndedSaysWhatItWaitedFor(t *testing.T) {
	for name, line := range lines {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " cancelled ", cancelled), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					l := v.Get(line.hold(v.Session()))
					time.Sleep(2 * time.Second)
					wait := line.wait(v.Session())
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					defer cancel()
					want := context.DeadlineExceeded
					if cancelled {
						want = context.Canceled
						time.AfterFunc(10*time.Second-1, cancel)
					}
					_, err := wait(ctx)
					require.ErrorIs(t, err, want)
					require.EqualError(t, err, fmt.Sprintf("%s %s: %v: %s%s", line.op, proving.LockPath, want, line.place, heldHere(12*time.Second)))
					require.NoError(t, l.Unlock())
				})
			})
		}
	}
}

func TestAnEndedWaitSaysItsPlaceInALongLine(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(6)
		l := v.Lock(ms[0])
		ctx, cancel := context.WithCancel(context.Background())
		var all []*proving.Attempt
		for _, m := range ms[1:] {
			all = append(all, proving.Begin(ctx, m))
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		first, end := context.WithTimeout(context.Background(), time.Second)
		defer end()
		_, err := zksync.NewMutex(v.Session(), proving.LockPath).LockContext(first)
		require.ErrorContains(t, err, ": context deadline exceeded: 6th in line, "+heldHere(4*time.Second))
		cancel()
		for _, a := range all {
			require.Regexp(t, `: context canceled: \d.. in line, `+heldHere(4*time.Second)+"$", v.Failed(a))
		}
		require.NoError(t, l.Unlock())
	})
}

// The goroutines that share a Mutex ask once, also if some of them go on waiting.
func TestTheWaitersOfOneProcessAskOnceWhoHolds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l, m := v.Lock(v.Mutexes(1)[0]), v.Mutexes(1)[0]
		stays := proving.Begin(context.Background(), m)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		var all []*proving.Attempt
		for range 20 {
			all = append(all, proving.Begin(ctx, m))
		}
		time.Sleep(4 * time.Second)
		before := v.Server.Requests()
		for _, a := range all {
			require.EqualError(t, v.Failed(a), "zksync: lock "+proving.LockPath+": context deadline exceeded: 1st in line, "+heldHere(5*time.Second))
		}
		require.LessOrEqual(t, v.Server.Requests()-before, 1)
		require.NoError(t, l.Unlock())
		held := v.Granted(stays)
		time.Sleep(time.Second)

		short, end := context.WithTimeout(context.Background(), time.Second)
		defer end()
		before = v.Server.Requests()
		_, err := m.LockContext(short)
		require.EqualError(t, err, "zksync: lock "+proving.LockPath+": context deadline exceeded: held by this process for 2s")
		require.Equal(t, before, v.Server.Requests())
		require.NoError(t, held.Unlock())
	})
}

func TestAWaitThatEndsWhileTheServersAreSilentSaysSo(t *testing.T) {
	for _, name := range []string{"Mutex", "RWMutex, reading", "Weighted"} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session(zksync.WithTimeout(20 * time.Second))
				heal := v.Server.Freeze()
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				start := time.Now()
				_, err := lines[name].wait(s)(ctx)
				v.Within(start, 5*time.Second+100*time.Millisecond, "the wait")
				heal()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, ": context deadline exceeded; no server has answered for 5s")
			})
		})
	}
}
