// Shards: the locks of a service move from one ensemble to two, while it runs. An old process, one that moves and a new one overlap, as
// in two rollouts, and no name is held by two of them.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The variables with the addresses of the two ensembles.
const one, two = "SHARDS_ONE", "SHARDS_TWO"

func main() { cluster.Main(conduct, work) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	second, err := zktest.StartAddr("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer second.Close()
	_ = os.Setenv(one, fmt.Sprintf("%s/shards-%d", c.Servers, os.Getpid()))
	_ = os.Setenv(two, second.Addr())
	var all []*cluster.Process
	for _, name := range []string{"old", "moving", "new"} {
		p, err := c.Start(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, p)
		time.Sleep(2 * time.Second) // a rollout takes its time
	}
	for _, p := range all {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	c.Say("the list has two ensembles now, and no name was held by two processes")
	return nil
}

// connect is what differs between the three versions of the service.
func connect(ctx context.Context, name string) (*zkshard.Shards, error) {
	before, after := []string{os.Getenv(one)}, []string{os.Getenv(one), os.Getenv(two)}
	timeout := zksync.WithTimeout(cluster.Timeout)
	switch name {
	case "old":
		return zkshard.Connect(ctx, before, timeout)
	case "moving": // the first rollout
		return zkshard.Connect(ctx, after, timeout, zkshard.WithMoving(before))
	}
	return zkshard.Connect(ctx, after, timeout) // the second one; it waits until the old process has ended
}

// work locks one account after the other. s is only for counters that show who else is inside.
func work(ctx context.Context, s *zksync.Session, name string) error {
	shards, err := connect(ctx, name)
	if err != nil {
		return err
	}
	defer shards.Close()
	fmt.Println("connected")
	held := 0
	for start := time.Now(); time.Since(start) < 6*time.Second; held++ {
		account := fmt.Sprintf("/accounts/%d", held%5)
		inside := zkatomic.NewInt64(s, "/inside"+account)
		err := shards.NewMutex(account).Do(ctx, func(ctx context.Context, _ zksync.Leases) error {
			n, err := inside.Add(ctx, 1)
			if err == nil && n != 1 {
				err = fmt.Errorf("%d processes hold %s", n, account)
			}
			if err == nil {
				_, err = inside.Add(ctx, -1)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("ends after %d locks\n", held)
	return nil
}
