// Phased batch: four workers read, then all sort, then all write. Nobody begins a phase before all have ended the one
// before. One worker is killed in the middle; the others go on without it.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

const workers = 4

func main() { cluster.Main(conduct, work) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	var all []*cluster.Process
	for _, name := range cluster.Names("worker", workers) {
		p, err := c.Start(ctx, name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := zkphaser.New(s, "/batch/phases").AwaitAdvance(ctx, 0); err != nil { // until the first phase has ended
		return err
	}
	if err := all[workers-1].Kill(); err != nil {
		return err
	}
	for _, p := range all[:workers-1] {
		if err := p.Wait(); err != nil {
			return err
		}
	}
	c.Say("three workers have ended all phases; the killed one held them up for a session timeout (%v)", cluster.Timeout)
	return nil
}

// work is what each worker does.
func work(ctx context.Context, s *zksync.Session, name string) error {
	phases := zkphaser.New(s, "/batch/phases")
	if _, err := phases.Register(ctx); err != nil {
		return err
	}
	// The first phase begins when all are registered: without this latch the first worker would be alone in it.
	registered := zklatch.New(s, "/batch/registered", workers)
	if err := registered.CountDown(ctx); err != nil {
		return err
	}
	if err := registered.Wait(ctx); err != nil {
		return err
	}
	for _, step := range []string{"read", "sorted", "wrote"} {
		time.Sleep(100 * time.Millisecond)
		fmt.Println(step, "its part")
		if name == "worker-4" && step == "sorted" {
			select {} // it hangs, and is killed
		}
		if _, err := phases.ArriveAndAwaitAdvance(ctx); err != nil {
			return err
		}
	}
	_, err := phases.ArriveAndDeregister(ctx)
	return err
}
