package zksync_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A disk that two machines must not write to at once, and that cannot compare fencing tokens. What a holder that has lost
// the lock has sent to it has 300 ms to arrive before the next one is granted.
func ExampleWithLockDelay() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	connect := func() *zksync.Mutex {
		s, err := zksync.Connect(ctx, srv.Addr())
		if err != nil {
			panic(err)
		}
		return zksync.NewMutex(s, "/locks/disk", zksync.WithLockDelay(300*time.Millisecond))
	}
	a, b := connect(), connect()

	a.Lock()
	a.Unlock()
	fmt.Println("after a release:", b.TryLock())
	lost := b.Lease()

	srv.Delete(lost.Node()) // somebody removes the holder's node externally, which is a loss
	<-lost.Done()
	b.Unlock()
	fmt.Println("after a loss:", a.TryLock())
	start := time.Now()
	a.Lock()
	fmt.Println("and later:", time.Since(start) > 200*time.Millisecond)
	a.Unlock()
	// Output:
	// after a release: true
	// after a loss: false
	// and later: true
}
