package zkcron_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// outcomes is a tracer that keeps the outcomes of ticks.
type outcomes struct {
	mu  sync.Mutex
	all []string
}

func (*outcomes) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (*outcomes) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (o *outcomes) Tick(ctx context.Context, d zksync.TickData) {
	if d.Path != path || d.Name != "schedule" || d.Job != job || d.Token.IsZero() != (d.Outcome == "missed") || ctx == nil {
		panic(fmt.Sprint(d))
	}
	text := fmt.Sprintf("%v: %s %v", time.Since(began), d.Outcome, d.Scheduled.Sub(began))
	if d.Missed > 0 {
		text += fmt.Sprint(", ", d.Missed, " ticks")
	}
	if d.Took > 0 {
		text += fmt.Sprint(", took ", d.Took)
	}
	if d.Err != nil {
		text += ", " + d.Err.Error()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, text)
}

func (o *outcomes) take() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.all
	o.all = nil
	return all
}

// began is when a bubble begins.
var began = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// runs runs a job every second, of a process whose tracer is o, until the returned function is called.
func runs(t *testing.T, s *zksync.Session, f zkcron.Func, opts ...zkcron.JobOption) (end func()) {
	c := zkcron.New(s, path, zksync.WithName("schedule"))
	c.Every(job, time.Second, f, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
}

func TestEachTickHasAnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, o := zktest.Run(t), &outcomes{}
		end := runs(t, srv.Session(t, zksync.WithTracer(o)), func(_ context.Context, tick zkcron.Tick) error {
			switch tick.Scheduled.Sub(began) {
			case 2 * time.Second:
				time.Sleep(2500 * time.Millisecond)
			case 5 * time.Second:
				return errors.New("out of cheese")
			case 6 * time.Second:
				runtime.Goexit()
			}
			time.Sleep(time.Millisecond)
			return nil
		})
		time.Sleep(7500 * time.Millisecond)
		require.Equal(t, []string{
			"1.001s: done 1s, took 1ms",
			"4.501s: done 2s, took 2.501s",
			"4.501s: missed 4s, 1 ticks",
			"4.502s: done 4s, took 1ms",
			"5s: failed 5s, out of cheese",
			"6s: failed 6s, the function called runtime.Goexit",
			"7.001s: done 7s, took 1ms",
		}, o.take())
		end()
		require.Empty(t, o.take())
	})
}

// A run that does not come to its end in the record is abandoned: the next holder says that, in whichever process, and runs the tick
// again, unless it must not.
func TestARunThatDoesNotEndIsAbandonedOnce(t *testing.T) {
	for name, opts := range map[string][]zkcron.JobOption{"again": nil, "once": {zkcron.WithAtMostOnce()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, o := zktest.Run(t), &outcomes{}
				s := srv.Session(t, zksync.WithTracer(o))
				lost := true
				end := runs(t, s, func(ctx context.Context, tick zkcron.Tick) error {
					if lost {
						<-ctx.Done()
						lost = false
						return nil // though the lease is lost
					}
					return nil
				}, opts...)
				time.Sleep(1500 * time.Millisecond)
				srv.Expire(s.ID())
				time.Sleep(time.Second)
				want := []string{"1.52s: abandoned 1s, the process ended, or lost its lease, before the function returned", "1.52s: done 1s", "2s: done 2s"}
				if name == "once" {
					want = []string{want[0], want[2]}
				}
				require.Equal(t, want, o.take())
				end()
			})
		})
	}
}

// A tick that the end of Run cuts short is run by another process, which says that it was abandoned.
func TestATickThatIsCutShortHasItsOutcomeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, one, two := zktest.Run(t), &outcomes{}, &outcomes{}
		end := runs(t, srv.Session(t, zksync.WithTracer(one)), func(ctx context.Context, _ zkcron.Tick) error {
			<-ctx.Done()
			return ctx.Err()
		})
		time.Sleep(500 * time.Millisecond)
		endTwo := runs(t, srv.Session(t, zksync.WithTracer(two)), func(context.Context, zkcron.Tick) error { return nil })
		time.Sleep(2 * time.Second)
		end()
		time.Sleep(time.Second)
		require.Empty(t, one.take())
		require.Equal(t, []string{
			"2.5s: abandoned 1s, the process ended, or lost its lease, before the function returned",
			"2.5s: done 1s", "2.5s: done 2s", "3s: done 3s",
		}, two.take())
		endTwo()
	})
}

// A lost answer changes nothing.
func TestAnOutcomeIsTracedOnce(t *testing.T) {
	for name, lose := range map[string]func(*zktest.Rule) *zktest.Rule{"request": (*zktest.Rule).LoseRequest, "reply": (*zktest.Rule).LoseReply} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, o := zktest.Run(t), &outcomes{}
				end := runs(t, srv.Session(t, zksync.WithTracer(o)), func(context.Context, zkcron.Tick) error { return nil })
				time.Sleep(time.Second / 2)
				for n := range 6 { // each write of the next three ticks
					srv.Intercept(lose(zktest.On(zktest.SetData, "/schedules/**").Nth(n + 1).Times(1)))
				}
				time.Sleep(3 * time.Second)
				got := o.take()
				require.Len(t, got, 3)
				for i, text := range got {
					require.Contains(t, text, fmt.Sprintf("done %ds", i+1))
				}
				end()
			})
		})
	}
}
