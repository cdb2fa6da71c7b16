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
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

const workers = 4

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
	var all []*cluster.Process
	for _, name := range cluster.Names("worker", workers) {
		p, err := c.Start(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if err := await(ctx, s, 4); err != nil {
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
	n, err := zkmap.New[string, string](s, results).Len(ctx)
	c.Say("%d partitions are done, and none was done by two", n)
	return err
}

// results is the path of a map: the worker that has done each partition.
const results = "/batch/results"

// await waits until n partitions are done.
func await(ctx context.Context, s *zksync.Session, n int) error {
	for _, err := range zkmap.New[string, string](s, results).Watch(ctx) {
		if n--; err != nil || n == 0 {
			return err
		}
	}
	return ctx.Err()
}

// join is what each worker does.
func join(ctx context.Context, s *zksync.Session, name string) error {
	group := zkgroup.New(s, "/batch/workers")
	me, err := group.Join(ctx, zkgroup.Member{ID: name})
	if err != nil {
		return err
	}
	did := zkmap.New[string, string](s, results)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		if await(ctx, s, len(partitions())) == nil {
			cancel() // then Assign ends
		}
	}()
	var mine atomic.Int64
	err = group.Assign(ctx, me, partitions(), func(ctx context.Context, item string, l *zksync.Lease) error {
		who, there, err := did.Load(ctx, item)
		if err != nil {
			return err
		}
		if there {
			fmt.Println(item, "was done by", who, "which was killed before it could say so")
			return nil
		}
		fmt.Println("begins", item)
		select {
		case <-time.After(work(item)):
		case <-ctx.Done(): // the item moves to another worker, or the lease was lost
			fmt.Println("gives up", item)
			return context.Cause(ctx)
		}
		if who, twice, err := did.LoadOrStore(ctx, item, name); err != nil {
			return err
		} else if twice {
			return fmt.Errorf("%s was done by %s meanwhile", item, who)
		}
		mine.Add(1)
		return nil
	})
	fmt.Println("did", mine.Load(), "partitions")
	return err
}
