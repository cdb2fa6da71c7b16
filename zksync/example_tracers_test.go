package zksync_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// transactions is slowLocks that counts transactions, too: it has the method of RequestTracer.
type transactions struct {
	slowLocks
	n *atomic.Int64
}

func (t transactions) Request(data zksync.RequestData) {
	if data.Op == "multi" {
		t.n.Add(1)
	}
}

// journal prints what happens to holds.
type journal struct{}

func (journal) AcquireStart(ctx context.Context, data zksync.AcquireStartData) context.Context {
	fmt.Printf("%s: acquire %s\n", data.Name, data.Path)
	return ctx
}

func (journal) AcquireEnd(_ context.Context, data zksync.AcquireEndData) {
	fmt.Printf("%s: granted with %d ahead, error %v\n", data.Name, data.Position, data.Err)
}

func (journal) Release(_ context.Context, data zksync.ReleaseData) {
	fmt.Printf("%s: released\n", data.Name)
}

func (journal) Opened(s *zksync.Session) { fmt.Println("a session is", s.State()) }

func ExampleTracers() {
	srv := zktest.Start()
	defer srv.Close()
	ctx, n := context.Background(), new(atomic.Int64)
	s, err := zksync.Connect(ctx, srv.Addr(), zksync.WithTracer(zksync.Tracers(journal{}, transactions{slowLocks{time.Second}, n})))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	l, err := zksync.NewMutex(s, "/locks/orders", zksync.WithName("orders")).LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = l.Unlock()
	fmt.Println(n.Load(), "transaction")
	// Output:
	// a session is connected
	// orders: acquire /locks/orders
	// orders: granted with 0 ahead, error <nil>
	// orders: released
	// 1 transaction
}
