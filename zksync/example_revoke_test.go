package zksync_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A long job holds a lock, and gives it up between two steps when somebody asks for it.
func ExampleRevoke() {
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
	job, urgent := connect(), connect()
	defer job.Close()
	defer urgent.Close()

	lease, err := zksync.NewMutex(job, "/locks/report").LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		select {
		case <-lease.Revoked(): // somebody asks: finish the step, and give the lock up
		case <-lease.Done(): // it is lost
		}
		_ = lease.Unlock()
	}()

	list, err := zksync.Contenders(ctx, urgent, "/locks/report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(list), list[0].State, zksync.Revoke(ctx, urgent, list[0]))
	next, err := zksync.NewMutex(urgent, "/locks/report").LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("granted:", next.Token().Compare(lease.Token()) > 0)
	fmt.Println(next.Unlock())
	// Output:
	// 1 held <nil>
	// granted: true
	// <nil>
}
