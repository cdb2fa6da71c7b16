// Partitioned batch: sixteen partitions are spread over four workers. One worker is killed with SIGKILL; its partitions
// move to the others, and no partition is ever worked on by two. When all are done, the batch ends.
package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

const workers, path = 4, "/batch/workers"

// work is how long a partition takes: some are big.
func work(item string) time.Duration {
	return time.Duration(len(item)+int(item[len(item)-1]-'0')) * 50 * time.Millisecond
}

// partitions are the items of the batch.
func partitions() (all []string) {
	for i := range 16 {
		all = append(all, fmt.Sprintf("partition-%02d", i))
	}
	return all
}

func main() { cluster.Main(conduct, join) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	group := zkgroup.New(s, path)
	var all []*cluster.Process
	for _, name := range cluster.Names("worker", workers) {
		p, err := c.Start(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if err := await(ctx, group, 4); err != nil {
		return err
	}
	if err := all[0].Kill(); err != nil {
		return err
	}
	for _, p := range all[1:] {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	st, err := group.State(ctx)
	c.Say("%d partitions are done, and none was worked on by two", st.Done)
	return err
}

// await waits until n partitions are done.
func await(ctx context.Context, group *zkgroup.Group, n int64) error {
	for {
		if st, err := group.State(ctx); err != nil || st.Done >= n {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join is what each worker does.
func join(ctx context.Context, s *zksync.Session, name string) error {
	group := zkgroup.New(s, path)
	me, err := group.Join(ctx, zkgroup.Member{ID: name})
	if err != nil {
		return err
	}
	var mine atomic.Int64
	err = group.Assign(ctx, me, partitions(), func(ctx context.Context, item string, l *zksync.Lease) error {
		fmt.Println("begins", item)
		select {
		case <-time.After(work(item)):
			mine.Add(1)
			return nil
		case <-ctx.Done(): // the item moves to another worker, or the lease was lost
			fmt.Println("gives up", item)
			return context.Cause(ctx)
		}
	}, zkgroup.WithUntilDone())
	fmt.Println("did", mine.Load(), "partitions")
	return err
}
