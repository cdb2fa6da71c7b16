// Live configuration: an administrator changes a value, and three services have the new one at once, without a restart
// and without asking again and again. A second administrator, who edits an old copy, overwrites nothing. Each service stores in a
// map which limit it runs with, as long as it lives, so the administrator sees when all of them do.
package main

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
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
	edited, err := value.LoadSnapshot(ctx) // the second administrator opens the form
	if err != nil {
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
		if !now.Final { // after that they end
			if err := allRunWith(ctx, s, now.Limit); err != nil {
				return err
			}
		}
	}
	saved, err := value.StoreIf(ctx, edited.Version, config{Limit: 1000}) // and saves it
	if err != nil || saved {
		return fmt.Errorf("the old form was saved: %t (%v)", saved, err)
	}
	c.Say("the form was too old to be saved")
	err = <-ended
	c.Say("all services have the last configuration")
	return err
}

// allRunWith waits until all services run with a limit.
func allRunWith(ctx context.Context, s *zksync.Session, limit int) error {
	running := map[string]bool{}
	for change, err := range zkmap.New[string, int](s, "/running").Watch(ctx) {
		if err != nil {
			return err
		}
		if running[change.Key] = change.Value == limit; !running[change.Key] {
			delete(running, change.Key)
		}
		if len(running) == services {
			return nil
		}
	}
	return ctx.Err()
}

// serve is what each service does: it follows the configuration.
func serve(ctx context.Context, s *zksync.Session, name string) error {
	running, started := zkmap.New[string, int](s, "/running"), false
	for now, err := range zkatomic.NewValue[config](s, "/config").Watch(ctx) {
		if err != nil {
			return err
		}
		if err := running.StoreEphemeral(ctx, name, now.Value.Limit); err != nil {
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
