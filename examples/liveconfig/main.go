// Live configuration: an administrator changes a value, and three services have the new one at once, without a restart
// and without asking again and again. One of them loses its connection meanwhile, and has the latest when it is back.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

const services = 3

// config is the configuration. It travels as JSON.
type config struct {
	Limit int
	Final bool
}

func main() { cluster.Main(conduct, serve) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	value := zkatomic.NewValue[config](s, "/config")
	if err := value.Store(ctx, config{Limit: 10}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.All(ctx, cluster.Names("service", services)...) }()
	if err := zklatch.New(s, "/started", services).Wait(ctx); err != nil {
		return err
	}
	for _, limit := range []int{20, 30, 40} {
		// Update reads, and writes what the function returns if nobody else has written meanwhile.
		now, err := value.Update(ctx, func(old config, _ bool) (config, error) {
			return config{Limit: limit, Final: limit == 40}, nil
		})
		if err != nil {
			return err
		}
		c.Say("the limit is %d now", now.Limit)
		time.Sleep(200 * time.Millisecond)
	}
	err = <-ended
	c.Say("all services have the last configuration")
	return err
}

// serve is what each service does: it follows the configuration.
func serve(ctx context.Context, s *zksync.Session, _ string) error {
	started := false
	for now, err := range zkatomic.NewValue[config](s, "/config").Watch(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("runs with limit %d (%d changes were too quick to see)\n", now.Value.Limit, now.Skipped)
		if now.Value.Final {
			return nil
		}
		if !started {
			started = true
			if err := zklatch.New(s, "/started", services).CountDown(ctx); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
