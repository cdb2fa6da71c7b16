package zkgocron_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	zkgocron "github.com/go-menagerie/menagerie/adapters/gocron"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

const interval = 2 * time.Second

// diary has what ran where, and when.
type diary struct {
	mu    sync.Mutex
	began time.Time
	ran   []string
	at    []time.Duration
}

func (d *diary) note(who string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran = append(d.ran, who)
	d.at = append(d.at, time.Since(d.began))
}

// seen returns who ran, in order, and when.
func (d *diary) seen() (ran string, at []time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.ran, ""), slices.Clone(d.at)
}

// schedule runs a job in a scheduler of its own, first at a time, until the test ends. It returns what ends it earlier.
func schedule(t *testing.T, first time.Time, job func(ctx context.Context), opts ...gocron.SchedulerOption) (end func()) {
	s, err := gocron.NewScheduler(opts...)
	require.NoError(t, err)
	_, err = s.NewJob(gocron.DurationJob(interval), gocron.NewTask(job), gocron.WithName("mail/digest"),
		gocron.WithStartAt(gocron.WithStartDateTime(first)))
	require.NoError(t, err)
	s.Start()
	end = sync.OnceFunc(func() { _ = s.Shutdown() })
	t.Cleanup(end)
	return end
}

// Two processes whose clocks differ by 100 ms, and a job that takes no time.
func TestAcceptance220EachTickOfGocronRunsInOneProcess(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		d := diary{began: time.Now()}
		first := d.began.Add(interval)
		for i, who := range []string{"a", "b"} {
			locker := zkgocron.NewLocker(v.Session(), "/jobs", interval/2)
			schedule(t, first.Add(time.Duration(i)*100*time.Millisecond), func(context.Context) { d.note(who) }, gocron.WithDistributedLocker(locker))
		}
		time.Sleep(10*interval + interval/2)
		ran, at := d.seen()
		require.Len(t, ran, 10, "%v", at)
		if v.Virtual { // b never finds it free
			require.Equal(t, strings.Repeat("a", 10), ran)
			require.Equal(t, 10*interval, at[9])
		}
	})
}

// Why a lock is kept for a while.
func TestATickWouldRunTwiceIfItsLockWereFreeAtOnce(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		d := diary{began: time.Now()}
		for i, who := range []string{"a", "b"} {
			locker := zkgocron.NewLocker(v.Session(), "/jobs", 0)
			schedule(t, d.began.Add(interval+time.Duration(i)*100*time.Millisecond), func(context.Context) { d.note(who) }, gocron.WithDistributedLocker(locker))
		}
		time.Sleep(2*interval + interval/2)
		ran, _ := d.seen()
		require.Equal(t, "abab", ran)
	})
}

// A process that is cut off: the others go on when its session has ended, and its job learns of that before.
func TestAcceptance220AJobOfGocronLearnsThatItsLockIsLost(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		d := diary{began: time.Now()}
		s, first := v.Session(), d.began.Add(interval)
		locker := zkgocron.NewLocker(s, "/jobs/", interval/2)
		lost := make(chan time.Duration, 1)
		schedule(t, first, func(context.Context) {
			d.note("a")
			if l := locker.Lease("mail/digest"); time.Since(d.began) == interval {
				v.CutOff(s)
				<-l.Done()
				lost <- time.Since(d.began)
			}
		}, gocron.WithDistributedLocker(locker), gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule))
		schedule(t, first.Add(100*time.Millisecond), func(context.Context) { d.note("b") },
			gocron.WithDistributedLocker(zkgocron.NewLocker(v.Session(), "/jobs", interval/2)))
		ended := <-lost
		require.Nil(t, locker.Lease("other"))
		asked := time.Now()
		_, err := locker.Lock(t.Context(), "other")
		require.ErrorContains(t, err, "healthy: ")
		require.Zero(t, time.Since(asked))
		time.Sleep(20 * time.Second)
		_, at := d.seen()
		require.Greater(t, len(at), 5, "others run the next ticks")
		require.Greater(t, at[1], ended, "before that the job knows")
	})
}

func TestWhoeverUnlocksAJobOfGocron(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, s := t.Context(), v.Session()
		a, b := zkgocron.NewLocker(s, "/jobs", time.Second), zkgocron.NewLocker(v.Session(), "/jobs", time.Second)
		lock := func(l *zkgocron.Locker) gocron.Lock {
			t.Helper()
			got, err := l.Lock(ctx, "x")
			require.NoError(t, err)
			return got
		}
		refused := func(l *zkgocron.Locker) {
			t.Helper()
			_, err := l.Lock(ctx, "x")
			require.ErrorIs(t, err, zksync.ErrNotAcquired)
		}
		first := lock(a)
		refused(a) // the run is under way
		require.NoError(t, first.Unlock(ctx))
		require.ErrorIs(t, first.Unlock(ctx), zksync.ErrReleased)
		require.Nil(t, a.Lease("x"))
		refused(b)
		time.Sleep(900 * time.Millisecond)
		before := v.Server.Requests()
		second := lock(a) // its next tick
		require.Equal(t, before, v.Server.Requests())
		require.ErrorIs(t, first.Unlock(ctx), zksync.ErrReleased)
		time.Sleep(200 * time.Millisecond)
		refused(b) // the time begins again
		require.NoError(t, second.Unlock(ctx))
		time.Sleep(801 * time.Millisecond)
		third := lock(b)
		time.Sleep(time.Second)
		require.NoError(t, third.Unlock(ctx))
		fourth := lock(a)
		require.NoError(t, fourth.Unlock(ctx))

		v.Server.Expire(s.ID())
		time.Sleep(500 * time.Millisecond)
		v.Connected(s)
		fifth := lock(a) // the one that was kept is lost
		require.NoError(t, fifth.Unlock(ctx))

		// The release of the one that is kept takes a while, and the next tick comes meanwhile.
		held := v.Server.Delay(s.ID(), 300*time.Millisecond, 0)
		time.Sleep(time.Second + 100*time.Millisecond)
		sixth := lock(a)
		held()
		require.NoError(t, sixth.Unlock(ctx))
		time.Sleep(2 * time.Second)
		require.NoError(t, lock(b).Unlock(ctx))
	})
}

func TestAnyNameOfAJobOfGocronIsTheNameOfALock(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := zkgocron.NewLocker(v.Session(), "/jobs", 0)
		names := []string{"a", "", ".", "..", "a/b", "main.main.func1", "%-", "ä b", strings.Repeat("x", 201), strings.Repeat("/", 100_000)}
		for _, name := range names {
			_, err := l.Lock(t.Context(), name)
			require.NoError(t, err, name)
			require.True(t, l.Lease(name).Valid())
		}
		require.Len(t, v.Server.Children("/jobs"), len(names))
		require.Contains(t, v.Server.Children("/jobs"), "a%2Fb")
	})
}
