package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	// There is one item: whoever has it is inside. Each call is a member of its own.
	types["zkgroup"] = func(s *zksync.Session) enter {
		var members atomic.Int64
		return func(ctx context.Context) (func(), error) {
			g := zkgroup.New(s, "/group")
			m, err := g.Join(ctx, zkgroup.Member{ID: fmt.Sprint(os.Getpid(), "-", members.Add(1))})
			if err != nil {
				return nil, err
			}
			working, stop := context.WithCancel(ctx)
			has, ended := make(chan struct{}, 1), make(chan error, 1)
			go func() {
				ended <- g.Assign(working, m, []string{"item"}, func(ctx context.Context, _ string, _ *zksync.Lease) error {
					has <- struct{}{}
					<-working.Done() // it does not give the item up before
					return errors.New("the item is not done")
				})
			}()
			leave := func() {
				stop()
				<-ended
				_ = m.Leave(context.Background())
			}
			select {
			case <-has:
				return leave, nil
			case <-ctx.Done():
				leave()
				return nil, ctx.Err()
			}
		}
	}
}
