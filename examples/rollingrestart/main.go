// Rolling restart: eight services restart, at most two at a time.
//
// A semaphore bounds how many are down in the cluster. A service that dies during its restart frees its permit with its
// session, so the others do not wait for it for ever.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	services = 8
	atOnce   = 2
)

func main() { cluster.Main(conduct, restart) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	done := make(chan error, 1)
	go func() { done <- c.All(ctx, cluster.Names("service", services)...) }()
	most := int64(0)
	for permits := zksemaphore.NewWeighted(s, "/restart", atOnce); ; {
		select {
		case err := <-done:
			c.Say("all have restarted; at most %d of %d were down at a time", most, services)
			return err
		case <-time.After(20 * time.Millisecond):
			free, err := permits.Available(ctx)
			if err != nil {
				return err
			}
			most = max(most, atOnce-free)
		}
	}
}

// restart is what each service does.
func restart(ctx context.Context, s *zksync.Session, _ string) error {
	return zksemaphore.NewWeighted(s, "/restart", atOnce).Do(ctx, 1, func(ctx context.Context, _ *zksync.Lease) error {
		fmt.Println("down")
		select {
		case <-time.After(300 * time.Millisecond): // the restart
		case <-ctx.Done(): // the permit was lost: another service may be down in our place
			return context.Cause(ctx)
		}
		fmt.Println("up again")
		return nil
	})
}
