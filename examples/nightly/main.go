// Nightly job: three nodes have the same schedule, and each tick runs once in the cluster. A node is killed while it runs a
// tick: that tick runs again, on another node. Then the job runs once out of turn. (A night lasts a second here; a real one is At("report", "0 3 * * *", f).)
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

func main() { cluster.Main(conduct, node) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodes := make(map[string]*cluster.Process)
	for _, name := range cluster.Names("node", 3) {
		if nodes[name], err = c.Start(ctx, name); err != nil {
			return err
		}
	}
	for now, err := range zkatomic.NewValue[string](s, "/hangs").Watch(ctx) {
		if err != nil {
			return err
		}
		if now.OK {
			if err := nodes[now.Value].Kill(); err != nil {
				return err
			}
			break
		}
	}
	time.Sleep(2*cluster.Timeout + 2*time.Second)
	schedule := zkcron.New(s, "/cron")
	last, err := schedule.Last(ctx, "report")
	if err != nil {
		return err
	}
	c.Say("the newest tick is that of %s, run by %s", last.Scheduled.Local().Format(time.TimeOnly), last.Owner.Name)
	return schedule.RunNow(ctx, "report")
}

// node is what each node does.
func node(ctx context.Context, s *zksync.Session, name string) error {
	ticks := 0
	c := zkcron.New(s, "/cron")
	c.Every("report", time.Second, func(ctx context.Context, t zkcron.Tick) error {
		if t.OutOfTurn {
			fmt.Println("runs out of turn, token", t.Token)
			return nil
		}
		ticks++
		fmt.Printf("runs the tick of %s, token %s, %d missed before it\n", t.Scheduled.Local().Format(time.TimeOnly), t.Token, t.Missed)
		hangs := zkatomic.NewValue[string](s, "/hangs")
		if _, hung, err := hangs.Load(ctx); err != nil || hung || ticks < 3 {
			return err
		}
		if err := hangs.Store(ctx, name); err != nil {
			return err
		}
		select {} // until it is killed
	})
	return c.Run(ctx)
}
