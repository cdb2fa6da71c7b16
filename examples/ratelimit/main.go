// Rate limit: a partner allows 20 calls a second, whoever makes them. Three processes call it as often as the limit lets them; the
// first ends early, and the others use its part.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
)

const limit, burst = 20, 10

func main() { cluster.Main(conduct, call) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	start := time.Now()
	if err := c.All(ctx, cluster.Names("caller", 3)...); err != nil {
		return err
	}
	allowed := burst + limit*time.Since(start).Seconds()
	made, err := zkatomic.NewInt64(s, "/calls").Load(ctx)
	if err != nil {
		return err
	}
	if float64(made) > allowed {
		return fmt.Errorf("%d calls were made, and %.1f allowed", made, allowed)
	}
	c.Say("%d calls were made, and at most %.1f were allowed", made, allowed)
	return nil
}

// call is what each caller does.
func call(ctx context.Context, s *zksync.Session, name string) error {
	partner := zkrate.New(s, "/rates/partner", limit, burst)
	calls := zkatomic.NewInt64(s, "/calls")
	for second := range 6 {
		made := 0
		now, cancel := context.WithTimeout(ctx, time.Second)
		for partner.Wait(now) == nil {
			made++
		}
		cancel()
		fmt.Printf("%d calls\n", made)
		if _, err := calls.Add(ctx, int64(made)); err != nil {
			return err
		}
		if name == "caller-1" && second == 1 {
			break
		}
	}
	return nil
}
