package zkgocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	zkgocron "github.com/go-menagerie/menagerie/adapters/gocron"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// newScheduler is what each process does.
func newScheduler(s *zksync.Session) (gocron.Scheduler, *zkgocron.Locker, error) {
	locker := zkgocron.NewLocker(s, "/jobs", 10*time.Second) // each tick of a job runs in one process
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	return scheduler, locker, err
}

// newLedScheduler is another choice: all jobs run in one process.
func newLedScheduler(ctx context.Context, s *zksync.Session, id string) (gocron.Scheduler, error) {
	elector := zkgocron.NewElector(ctx, s, "/scheduler", zkelection.Candidate{ID: id})
	return gocron.NewScheduler(gocron.WithDistributedElector(elector))
}

// Two processes have the same job at the same time, and one of them runs it.
func Example() {
	srv := zktest.Start()
	defer srv.Close()
	ended := make(chan string)
	for range 2 {
		s, err := zksync.Connect(context.Background(), srv.Addr())
		if err != nil {
			panic(err)
		}
		defer s.Close()
		scheduler, locker, err := newScheduler(s)
		if err != nil {
			panic(err)
		}
		defer scheduler.Shutdown()
		_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { fmt.Println("the digest is sent under a lease:", locker.Lease("digest").Valid()) }),
			gocron.WithName("digest"), // names the lock
			gocron.WithEventListeners(
				gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- "run" }),
				gocron.AfterLockError(func(uuid.UUID, string, error) { ended <- "skipped" })))
		if err != nil {
			panic(err)
		}
		scheduler.Start()
		fmt.Println(<-ended)
	}
	// Output:
	// the digest is sent under a lease: true
	// run
	// skipped
}

func ExampleElector() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		panic(err)
	}
	defer s.Close()
	ctx, resign := context.WithCancel(context.Background())
	defer resign()
	scheduler, err := newLedScheduler(ctx, s, "10.0.0.7:8080")
	if err != nil {
		panic(err)
	}
	defer scheduler.Shutdown()
	ran := make(chan struct{}, 100)
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() { ran <- struct{}{} }))
	if err != nil {
		panic(err)
	}
	scheduler.Start()
	<-ran
	fmt.Println("this process leads")
	// Output: this process leads
}
