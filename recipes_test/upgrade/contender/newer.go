package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

func init() {
	types["zkdurable"] = func(s *zksync.Session) enter {
		m := zkdurable.NewMutex(s, "/durable")
		return func(ctx context.Context) (func(), error) {
			h, err := m.Lock(ctx, fmt.Sprint("process ", os.Getpid()))
			if err != nil {
				return nil, err
			}
			return func() { _ = h.Unlock(context.Background()) }, nil
		}
	}
	types["zkatomic.Slots"] = func(s *zksync.Session) enter {
		slots := zkatomic.NewSlots(s, "/slots", 1)
		return leased(func(ctx context.Context) (*zksync.Lease, error) {
			_, l, err := slots.Acquire(ctx)
			return l, err
		})
	}
	// One element goes round: whoever has received it is inside.
	types["zkqueue"] = func(s *zksync.Session) enter {
		q := zkqueue.New[string](s, "/queue", zkqueue.WithCapacity(1))
		_, _ = q.Offer(context.Background(), "the element")
		return func(ctx context.Context) (func(), error) {
			d, err := q.Receive(ctx)
			if err != nil {
				return nil, err
			}
			return func() { _ = d.Nack(context.Background()) }, nil
		}
	}
}
