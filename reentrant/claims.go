package reentrant

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
)

// claims keep the goroutines of one owner from beginning a hold at the same time: each would
// queue, and the second would wait for its own owner. An owner has several if it is in a context.
type claims struct {
	mu    sync.Mutex
	owned map[owner]chan struct{} // closed when the claim ends
}

// claim waits until no other goroutine of o has a claim, and takes it. It returns nil if ctx
// ended first, and, without waiting, for one who only tries.
func (c *claims) claim(ctx context.Context, o owner, try bool) (end func()) {
	for {
		c.mu.Lock()
		taken := c.owned[o]
		if taken == nil {
			mine := make(chan struct{})
			if c.owned == nil {
				c.owned = make(map[owner]chan struct{})
			}
			c.owned[o] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.owned, o)
				c.mu.Unlock()
				close(mine)
			}
		}
		c.mu.Unlock()
		if try {
			return nil
		}
		select {
		case <-taken:
		case <-ctx.Done():
			return nil
		}
	}
}

// busy is what one who only tries gets while another goroutine of o has a claim.
func busy(o owner) error {
	return fmt.Errorf("reentrant: another goroutine of %v is about to lock: %w", o, zksync.ErrNotAcquired)
}
