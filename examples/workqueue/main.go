// Work queue: one process puts ten jobs into a queue, three workers receive them. One worker is killed while it works on a
// job. The job comes again, to another worker, as its second attempt.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

const jobs = 10

// job is what a worker is told. It travels as JSON.
type job struct {
	Number int
	Slow   bool
}

func main() { cluster.Main(conduct, work) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	queue := zkqueue.New[job](s, "/jobs")
	for n := range jobs {
		if err := queue.Put(ctx, job{Number: n, Slow: n == 3}); err != nil {
			return err
		}
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
	done := zkatomic.NewInt64(s, "/done")
	for {
		n, err := done.Load(ctx)
		if err != nil {
			return err
		}
		if n == jobs {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	left, err := queue.Len(ctx)
	c.Say("%d jobs are done, %d are left in the queue", jobs, left)
	return err
}

// work is what each worker does, for ever.
func work(ctx context.Context, s *zksync.Session, name string) error {
	queue := zkqueue.New[job](s, "/jobs")
	for {
		d, err := queue.Receive(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("job %d, attempt %d\n", d.Value.Number, d.Attempt)
		if d.Value.Slow && d.Attempt == 1 {
			if err := zkatomic.NewValue[string](s, "/slow").Store(ctx, name); err != nil {
				return err
			}
			select {} // until it is killed
		}
		time.Sleep(50 * time.Millisecond)
		// Ack takes the job out of the queue, unless this worker was too slow and another one has it by now.
		if err := d.Ack(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "job", d.Value.Number, "was taken over:", strings.TrimSpace(err.Error()))
			continue
		}
		if _, err := zkatomic.NewInt64(s, "/done").Add(ctx, 1); err != nil {
			return err
		}
	}
}
