package cron_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

// lines collects the warnings of a session.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.Key + "=" + a.Value.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, text)
	return nil
}

// with are the lines with this text.
func (l *lines) with(text string) (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			all = append(all, line)
		}
	}
	return all
}

func TestAcceptance194DescriptorsAreTheSpecsThatTheyStandFor(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		for descriptor, spec := range map[string]string{"@daily": "0 0 * * *", "@hourly": "0 * * * *", "@weekly": "0 0 * * 0", "CRON_TZ=Asia/Tokyo @midnight": "TZ=Asia/Tokyo 0 0 * * *"} {
			ctx, cancel := context.WithCancel(t.Context())
			a, b := zkcron.New(v.Session(), path), zkcron.New(v.Session(), path)
			a.At(job, descriptor, nothing)
			b.At(job, spec, nothing)
			runs := []*proving.Attempt{starts(ctx, a)}
			v.Queued(queue, 1)
			runs = append(runs, starts(ctx, b))
			v.Queued(queue, 2) // a process with another schedule would not queue
			ours, there := a.Next(job)
			require.True(t, there)
			theirs, _ := b.Next(job)
			require.Equal(t, theirs, ours, descriptor)
			ends(v, cancel, runs...)
		}
	})
}

func TestAcceptance194EveryInASpecIsEvery(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		time.Sleep(time.Until(second(62)))
		var bk book
		ctx, cancel := context.WithCancel(t.Context())
		a, b := zkcron.New(v.Session(), path), zkcron.New(v.Session(), path)
		a.At(job, "@every 90s", bk.writes(0, nil))
		b.Every(job, 90*time.Second, bk.writes(1, nil))
		runs := []*proving.Attempt{starts(ctx, a)}
		v.Queued(queue, 1)
		runs = append(runs, starts(ctx, b))
		v.Queued(queue, 2)
		next, there := a.Next(job)
		require.True(t, there)
		require.Zero(t, next.Unix()%90, "a multiple since the epoch, and not 90 seconds after the start")
		time.Sleep(time.Until(next.Add(time.Second)))
		require.Equal(t, []time.Time{next}, bk.times())
		ends(v, cancel, runs...)
	})
}

func TestAcceptance194NextIsTheNextTickOfARegisteredJob(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		c := zkcron.New(v.Session(), path)
		c.At(job, "CRON_TZ=Europe/Berlin 0 3 * * *", nothing, zkcron.WithJitter(time.Hour))
		c.At("bad", "0 3 * *", nothing)
		at, there := c.Next(job)
		require.True(t, there)
		require.Equal(t, time.Date(2000, 1, 1, 3, 0, 0, 0, berlin(t)), at)
		time.Sleep(time.Until(at))
		at, _ = c.Next(job)
		require.Equal(t, time.Date(2000, 1, 2, 3, 0, 0, 0, berlin(t)), at, "the one after that of now")
		for _, name := range []string{"other", "bad", ""} {
			at, there := c.Next(name)
			require.False(t, there, name)
			require.Zero(t, at, name)
		}
	})
}

func TestAcceptance198ATimeoutEndsTheContextAndTheTickHasFailed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		var said lines
		s := v.Session(zksync.WithLogger(slog.New(&said)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan time.Duration, 10)
		c := zkcron.New(s, path)
		c.Every(job, 2*time.Minute, b.writes(0, func(ctx context.Context, k zkcron.Tick) error {
			began := time.Now()
			<-ctx.Done()
			ended <- time.Since(began)
			time.Sleep(5 * time.Second) // it does not return at once
			switch len(b.all()) {
			case 1:
				return ctx.Err()
			case 2:
				return nil
			}
			return errJob
		}), zkcron.WithTimeout(20*time.Second))
		run := starts(ctx, c)
		time.Sleep(2*time.Minute + 26*time.Second)
		require.Equal(t, 20*time.Second, <-ended)
		r := last(v, s)
		require.Equal(t, "timed out after 20s: context deadline exceeded", r.Err)
		require.Equal(t, 25*time.Second, r.Ended.Sub(r.Started).Truncate(time.Second), "the process has the job until the function returns")
		require.Equal(t, []string{"a tick failed job=nightly path=/schedules/a reason=scheduled for 2000-01-01T00:02:00Z error=" + r.Err}, said.with("tick"))
		time.Sleep(2 * time.Minute)
		require.Empty(t, last(v, s).Err, "it succeeded, if late")
		require.Equal(t, []string{"a tick succeeded after its timeout job=nightly path=/schedules/a reason=scheduled for 2000-01-01T00:04:00Z"}, said.with("timeout"))
		err := c.RunNow(t.Context(), job)
		require.ErrorIs(t, err, zkcron.ErrFailed)
		require.ErrorContains(t, err, "timed out after 20s: the disk is full")
		require.Len(t, said.with("out of turn, at 2000-01-01T00:04:2"), 1)
		ends(v, cancel, run)
	})
}

func TestAcceptance198TheTimeoutIsADeadlineExceeded(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, cancel := context.WithCancel(t.Context())
		cause := make(chan error, 10)
		run := starts(ctx, every(v.Session(), func(ctx context.Context, _ zkcron.Tick) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			return errors.New("x")
		}, zkcron.WithTimeout(time.Minute)))
		why := <-cause
		require.ErrorIs(t, why, context.DeadlineExceeded)
		require.EqualError(t, why, "timed out after 1m0s")
		ends(v, cancel, run)
	})
}

// Two nodes with the same job; the first one leaves after some ticks.
func TestAcceptance199ATickBeginsOnceWithinItsJitter(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var b book
		begin := func(n int) (*proving.Attempt, context.CancelFunc) {
			c := zkcron.New(v.Session(), path)
			c.Every(job, time.Minute, b.writes(n, nil), zkcron.WithJitter(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			a := starts(ctx, c)
			v.Queued(queue, n+1)
			return a, cancel
		}
		first, leave := begin(0)
		second, cancel := begin(1)
		time.Sleep(10 * time.Minute)
		ends(v, leave, first)
		time.Sleep(10 * time.Minute)
		ends(v, cancel, second)
		all := b.all()
		require.GreaterOrEqual(t, len(all), 18)
		moments := map[time.Duration]bool{}
		for i, e := range all {
			require.Equal(t, all[0].tick.Scheduled.Add(time.Duration(i)*time.Minute), e.tick.Scheduled, "each once, none left out")
			require.Zero(t, e.tick.Missed)
			late := e.at.Sub(e.tick.Scheduled)
			require.GreaterOrEqual(t, late, time.Duration(0))
			require.Less(t, late, time.Minute+time.Second)
			moments[late] = true
		}
		require.Len(t, moments, len(all), "at different moments")
		b.grows(t, "")
	})
}

// The ticks that could not begin are counted from their moments: one that is not due yet is not missed.
func TestAcceptance199MissedTicksWithJitter(t *testing.T) {
	for _, policy := range []zkcron.Missed{zkcron.RunOnce, zkcron.Skip, zkcron.RunAll} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var b book
			ctx, cancel := context.WithCancel(t.Context())
			run := starts(ctx, every(v.Session(), b.writes(0, func(context.Context, zkcron.Tick) error {
				time.Sleep([]time.Duration{0, 4700 * time.Millisecond, 0}[min(len(b.all())%5, 2)])
				return nil
			}), zkcron.WithJitter(900*time.Millisecond), zkcron.WithMissed(policy)))
			time.Sleep(time.Minute)
			ends(v, cancel, run)
			all := b.all()
			require.Greater(t, len(all), 10)
			for i := 1; i < len(all); i++ {
				apart := int(all[i].tick.Scheduled.Sub(all[i-1].tick.Scheduled) / time.Second)
				require.Equal(t, apart-1, all[i].tick.Missed)
				require.False(t, all[i].at.Before(all[i].tick.Scheduled))
				if policy == zkcron.RunAll {
					require.Equal(t, 1, apart)
				}
			}
		})
	}
}
