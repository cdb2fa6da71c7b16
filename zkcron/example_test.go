package zkcron_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Two processes have the same job. Each tick runs in one of them.
func ExampleCron() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ticks := make(chan zkcron.Tick)
	for range 2 { // two processes
		s, err := zksync.Connect(ctx, srv.Addr())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		c := zkcron.New(s, "/schedules/billing")
		c.At("invoices", "CRON_TZ=Europe/Berlin 0 3 * * *", func(context.Context, zkcron.Tick) error { return nil })
		c.Every("heartbeat", 50*time.Millisecond, func(ctx context.Context, t zkcron.Tick) error {
			ticks <- t
			return nil
		}, zkcron.WithMissed(zkcron.RunAll))
		go func() { _ = c.Run(ctx) }()
	}
	before := <-ticks
	for range 3 {
		t := <-ticks
		fmt.Println(t.Name, t.Scheduled.Sub(before.Scheduled), t.Missed)
		before = t
	}
	cancel()
	// Output:
	// heartbeat 50ms 0
	// heartbeat 50ms 0
	// heartbeat 50ms 0
}

// The storage refuses what a paused process writes late.
func ExampleTick() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	var storage zksync.Fence // in the database: a column with the greatest token so far
	c := zkcron.New(s, "/schedules/billing")
	c.Every("invoices", 10*time.Millisecond, func(ctx context.Context, t zkcron.Tick) error {
		fmt.Println("admitted:", storage.Admit(t.Token) == nil)
		cancel() // enough for an example
		return nil
	})
	_ = c.Run(ctx)
	// Output: admitted: true
}

// What became of the last run, as any process may ask.
func ExampleRecord() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	c := zkcron.New(s, "/schedules/billing")
	runs := 0
	c.Every("invoices", 10*time.Millisecond, func(ctx context.Context, t zkcron.Tick) error {
		if runs++; runs == 2 { // the end of the first run is recorded by now
			cancel()
			<-ctx.Done()
		}
		return fmt.Errorf("no paper")
	}, zkcron.WithAtMostOnce())
	_ = c.Run(ctx)

	last, err := c.Last(context.Background(), "invoices")
	fmt.Println(last.Started.IsZero(), last.Ended.IsZero(), err) // the second run was interrupted
	_, err = c.Last(context.Background(), "reminders")
	fmt.Println(err)
	st, err := c.State(context.Background())
	fmt.Println(st.Jobs, st.Entries[0].ID, err)
	// Output:
	// false true <nil>
	// zkcron: last /schedules/billing: not found: a job "reminders"
	// 1 invoices <nil>
}

// All processes must agree on the schedule and the options of a job.
func ExampleJobOption() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// A rolling update: the new process makes the schedule faster, and is in charge at once.
	ran := make(chan string, 100)
	report := func(version string) zkcron.Func {
		return func(context.Context, zkcron.Tick) error { ran <- version; return nil }
	}
	before, after := zkcron.New(s, "/schedules/billing"), zkcron.New(s, "/schedules/billing")
	before.At("invoices", "0 3 * * *", report("old"), zkcron.WithMissed(zkcron.Skip), zkcron.WithRevision(1))
	after.Every("invoices", 10*time.Millisecond, report("new"), zkcron.WithMissed(zkcron.Skip), zkcron.WithRevision(2))
	for _, c := range []*zkcron.Cron{before, after} {
		go func() { _ = c.Run(ctx) }()
	}
	fmt.Println(<-ran)
	// Output: new
}

// Any process has the job run at once, in the process that has its lease, and waits for the end of the run.
func ExampleCron_RunNow() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	c := zkcron.New(s, "/schedules/billing")
	c.At("invoices", "@daily", func(_ context.Context, t zkcron.Tick) error {
		fmt.Println("runs", t.Name, t.OutOfTurn)
		return errors.New("no paper")
	}, zkcron.WithJitter(time.Hour)) // so that not all jobs begin at midnight
	go func() { _ = c.Run(ctx) }()

	err = c.RunNow(ctx, "invoices")
	fmt.Println(err, errors.Is(err, zkcron.ErrFailed))
	// Output:
	// runs invoices true
	// zkcron: run now /schedules/billing: the run failed: no paper true
}

// The context of the function ends in time. The next tick sees why the one before has failed.
func ExampleWithTimeout() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	c := zkcron.New(s, "/schedules/billing")
	c.Every("sync", 50*time.Millisecond, func(ctx context.Context, t zkcron.Tick) error {
		if t.LastErr != "" {
			fmt.Println(t.LastErr)
			cancel() // enough for an example
		}
		<-ctx.Done() // a call that hangs
		return ctx.Err()
	}, zkcron.WithTimeout(20*time.Millisecond))
	_ = c.Run(ctx)
	// Output: timed out after 20ms: context deadline exceeded
}
