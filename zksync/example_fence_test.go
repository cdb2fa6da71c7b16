package zksync_test

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
)

// guardedCounter can be changed only by the newest holder of a lock.
type guardedCounter struct {
	mu    sync.Mutex
	fence zksync.Fence
	value int
}

// Set admits the token and acts under one lock, so that no newer holder can come
// between the two.
func (c *guardedCounter) Set(value int, token zksync.Token) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fence.Admit(token); err != nil {
		return err
	}
	c.value = value
	return nil
}

func ExampleFence() {
	var c guardedCounter
	paused := zksync.Token{Zxid: 41} // was granted first, then its process was stopped
	taken := zksync.Token{Zxid: 42}  // was granted when the session of the first had expired

	fmt.Println(c.Set(1, taken))
	err := c.Set(7, paused) // it wakes up and does not know yet
	fmt.Println(errors.Is(err, zksync.ErrStale))
	fmt.Println(c.value, c.fence.Newest())
	// Output:
	// <nil>
	// true
	// 1 000000000000002a-00000000
}
