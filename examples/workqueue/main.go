// Work queue: one process puts ten jobs into a queue, and one that cannot be done. Three workers work on them. One of them is killed
// while it works on a job: the job comes again, to another worker, as its second attempt. The job that fails comes again later,
// and is a dead letter in the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

const jobs = 10

// job is what a worker is told. It travels as JSON.
type job struct {
	Number         int
	Slow, Hopeless bool
}

func main() { cluster.Main(conduct, work) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	queue := zkqueue.New[job](s, "/jobs")
	all := []job{{Number: jobs, Hopeless: true}}
	for n := range jobs {
		all = append(all, job{Number: n, Slow: n == 3})
	}
	if err := queue.PutAll(ctx, all); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := make(map[string]*cluster.Process)
	for _, name := range cluster.Names("worker", 3) {
		if workers[name], err = c.Start(ctx, name); err != nil {
			return err
		}
	}
	// The slow job tells who works on it: that worker is killed.
	for who, err := range zkatomic.NewValue[string](s, "/slow").Watch(ctx) {
		if err != nil {
			return err
		}
		if who.OK {
			if err := workers[who.Value].Kill(); err != nil {
				return err
			}
			break
		}
	}
	done, left, dead := 0, 0, 0
	for done+dead < jobs+1 || left > 0 { // an element is there until its worker has acknowledged it
		n, err := zkatomic.NewInt64(s, "/done").Load(ctx)
		if err != nil {
			return err
		}
		done = int(n)
		if left, err = queue.Len(ctx); err != nil {
			return err
		}
		if dead, err = queue.Dead().Len(ctx); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	for d, err := range queue.Dead().All(ctx) {
		if err != nil {
			return err
		}
		c.Say("dead letter after %d attempts: %s", d.Attempts, d.Err)
	}
	c.Say("%d jobs are done, %d are left in the queue", done, left)
	return nil
}

// work is what each worker does, until ctx ends.
func work(ctx context.Context, s *zksync.Session, name string) error {
	do := func(ctx context.Context, d *zkqueue.Delivery[job]) error {
		fmt.Printf("job %d, attempt %d\n", d.Value.Number, d.Attempt)
		switch {
		case d.Value.Hopeless:
			return errors.New("this job cannot be done")
		case d.Value.Slow && d.Attempt == 1:
			if err := zkatomic.NewValue[string](s, "/slow").Store(ctx, name); err != nil {
				return err
			}
			select {} // until it is killed
		}
		time.Sleep(50 * time.Millisecond)
		_, err := zkatomic.NewInt64(s, "/done").Add(ctx, 1)
		return err
	}
	return zkqueue.New[job](s, "/jobs").Work(ctx, 1, do, zkqueue.WithMaxAttempts(3), zkqueue.WithBackOff(100*time.Millisecond, time.Second))
}
