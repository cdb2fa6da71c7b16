package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-zookeeper/zk"
)

// Long work under a lock stops when the lease is lost.
func ExampleLease() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	lease, err := zksync.NewMutex(s, "/locks/import").LockContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.Expire(s.ID()) // the session ends at the servers, and all it held with it
	for chunk := 0; ; chunk++ {
		select {
		case <-lease.Done():
			fmt.Println(errors.Is(lease.Err(), zksync.ErrLost), errors.Is(lease.Unlock(), zksync.ErrLost))
			return
		case <-time.After(time.Millisecond):
			// import one chunk
		}
	}
	// Output: true true
}

// A guarded write is applied by the servers only if the lease still holds, whatever
// this process believes.
func ExampleLease_Guard() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()
	srv.Create("/config", []byte("v1"), 0, 0)

	lease, err := zksync.NewMutex(s, "/locks/config").LockContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	write := &zk.SetDataRequest{Path: "/config", Data: []byte("v2"), Version: -1}
	_, err = lease.Guard(context.Background(), write)
	fmt.Println(err)

	srv.Delete(lease.Node()) // taken away
	_, err = lease.Guard(context.Background(), write)
	fmt.Println(errors.Is(err, zksync.ErrLost))
	// Output:
	// <nil>
	// true
}

// A resource that cannot keep tokens asks the servers about one.
func ExampleVerify() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	ctx := context.Background()
	lease, err := zksync.NewMutex(s, "/locks/printer").LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(zksync.Verify(ctx, s, "/locks/printer", lease.Token()))
	_ = lease.Unlock()
	err = zksync.Verify(ctx, s, "/locks/printer", lease.Token())
	fmt.Println(errors.Is(err, zksync.ErrStale))
	// Output:
	// <nil>
	// true
}

// One Session is enough for a process.
func ExampleSession() {
	srv := zktest.Start()
	defer srv.Close()

	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr()+"/app", zksync.WithTimeout(4*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	changes := s.Changes(ctx)
	fmt.Println(s.State(), s.Timeout())
	_ = s.Close()
	for st := range changes {
		fmt.Println(st)
	}
	// Output:
	// connected 4s
	// closed
}

// A process that was killed and starts again need not wait for its own old locks to
// time out.
func ExampleWithSessionFile() {
	srv := zktest.Start()
	defer srv.Close()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := zksync.WithSessionFile(filepath.Join(dir, "session"))

	s := connect(srv, file)
	defer s.Close()
	_, err = zksync.Connect(context.Background(), srv.Addr(), file)
	fmt.Println(errors.Is(err, zksync.ErrMisuse)) // while its owner lives, the file is his
	// Output: true
}

// Options of a session and of its locks.
func ExampleOption() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv,
		zksync.WithTimeout(6*time.Second),
		zksync.WithName("billing"),
	)
	defer s.Close()
	m := zksync.NewMutex(s, "/locks/a",
		zksync.WithHandover(0),                // strict order between processes
		zksync.WithMaxHold(time.Minute),       // no critical section may take longer
		zksync.WithLinger(5*time.Millisecond), // locking again soon costs nothing
	)
	m.Lock()
	fmt.Println(m.Lease().Valid())
	m.Unlock()
	// Output: true
}
