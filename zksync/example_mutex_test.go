package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// connect opens a session with an in-process server, which takes the place of
// zksync.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/app").
func connect(srv *zktest.Server, opts ...zksync.SessionOption) *zksync.Session {
	s, err := zksync.Connect(context.Background(), srv.Addr(), opts...)
	if err != nil {
		panic(err)
	}
	return s
}

// A Mutex takes the place of a sync.Mutex. Only the constructor changes.
func ExampleMutex() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	var mu sync.Locker = zksync.NewMutex(s, "/locks/stock") // was: new(sync.Mutex)
	stock := 100
	var sales sync.WaitGroup
	for range 10 {
		sales.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			stock--
		})
	}
	sales.Wait()
	fmt.Println(stock)
	// Output: 90
}

// The context bounds the waiting, and the lease tells of the hold.
func ExampleMutex_LockContext() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	m := zksync.NewMutex(s, "/locks/report")
	lease, err := m.LockContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Unlock()

	// Somebody else does not get it, and does not wait for ever.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = zksync.NewMutex(s, "/locks/report").LockContext(ctx)
	before, after, _ := strings.Cut(err.Error(), ", held by ") // a host and a process, and for how long
	fmt.Println(before, after != "")
	fmt.Println(lease.Valid(), lease.Err())
	// Output:
	// zksync: lock /locks/report: context deadline exceeded: 1st in line true
	// true <nil>
}

// Whoever does not want to wait asks once.
func ExampleMutex_TryLockContext() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	nightly := zksync.NewMutex(s, "/locks/nightly")
	held, err := nightly.TryLockContext(context.Background())
	fmt.Println(held != nil, err)
	_, err = zksync.NewMutex(s, "/locks/nightly").TryLockContext(context.Background())
	fmt.Println(errors.Is(err, zksync.ErrNotAcquired))
	fmt.Println(held.Unlock())
	// Output:
	// true <nil>
	// true
	// <nil>
}

// Do runs a function under the lock. Its context ends with the lease.
func ExampleMutex_Do() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	m := zksync.NewMutex(s, "/locks/migration")
	err := m.Do(context.Background(), func(ctx context.Context, l *zksync.Lease) error {
		// Somebody removes the node of the lock externally: the lease is lost.
		srv.Delete(l.Node())
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, zksync.ErrLost))
	// Output: true
}

// The holder and the waiters.
func ExampleMutex_Contenders() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv, zksync.WithName("billing"))
	defer s.Close()

	m := zksync.NewMutex(s, "/locks/invoices")
	m.Lock()
	defer m.Unlock()
	list, err := m.Contenders(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range list {
		fmt.Println(c.Position, c.Kind, c.State, c.Owner.Name)
	}
	st, err := m.State(context.Background())
	fmt.Println(st.State, st.In(zksync.Held)[0].Owner.Name, err)
	// Output:
	// 0 lock held billing
	// held billing <nil>
}

func ExampleContender() {
	c := zksync.Contender{Position: 1, Kind: zksync.KindLock, State: zksync.Waiting, Owner: zksync.Owner{Host: "web-2", PID: 71}}
	if c.State == zksync.Waiting {
		fmt.Printf("%s/%d waits at position %d\n", c.Owner.Host, c.Owner.PID, c.Position)
	}
	// Output: web-2/71 waits at position 1
}

func ExampleStanding() {
	fmt.Println(zksync.Held, zksync.Waiting)
	// Output: held waiting
}
