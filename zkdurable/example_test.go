package zkdurable_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The process of an import dies. Nobody else may begin one, until the import is continued, and done.
func ExampleMutex() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	connect := func() *zksync.Session {
		s, err := zksync.Connect(ctx, srv.Addr())
		if err != nil {
			panic(err)
		}
		return s
	}
	dying, s := connect(), connect()
	defer s.Close()

	h, err := zkdurable.NewMutex(dying, "/imports/customers").Lock(ctx, "import of monday")
	if err != nil {
		fmt.Println(err)
		return
	}
	token := h.Token()
	dying.Close()

	m := zkdurable.NewMutex(s, "/imports/customers")
	_, err = m.TryLock(ctx, "import of tuesday")
	fmt.Println(errors.Is(err, zksync.ErrNotAcquired))
	h, err = m.Resume(ctx, "import of monday")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Token() == token)
	fmt.Println(h.Unlock(ctx))
	fmt.Println(m.State(ctx))
	// Output:
	// true
	// true
	// <nil>
	// /imports/customers: durable lock, free <nil>
}

// A job notes how far it has come. Somebody breaks its hold, and it is told by whom.
func ExampleHold() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr(), zksync.WithName("ann"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	m := zkdurable.NewMutex(s, "/jobs/invoices")
	h, err := m.Lock(ctx, "invoices of june")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.SetNote(ctx, "page 7 of 12"))
	fmt.Println(m.Break(ctx, h.Token(), "they were of may"))
	<-h.Done()
	fmt.Println(h.Unlock(ctx))
	by, why := h.Broken()
	fmt.Println(by, "said:", why)
	// Output:
	// <nil>
	// <nil>
	// zkdurable: unlock /jobs/invoices: lease lost: broken by ann: they were of may
	// ann said: they were of may
}

// Which owner holds it, and is a process at work?
func ExampleHolder() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	m := zkdurable.NewMutex(s, "/jobs/invoices")
	h, err := m.Lock(ctx, "invoices of june")
	if err != nil {
		fmt.Println(err)
		return
	}
	x, err := m.Holder(ctx)
	fmt.Println(x.Owner, x.Alive, err)
	fmt.Println(h.Unlock(ctx))
	x, err = m.Holder(ctx)
	fmt.Println(x == zkdurable.Holder{}, err)
	// Output:
	// invoices of june true <nil>
	// <nil>
	// true <nil>
}
