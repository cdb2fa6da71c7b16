package reentrant_test

import (
	"context"
	"fmt"
	"net"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// account is a class of a legacy system: its methods were synchronized in Java and
// call each other.
type account struct {
	mu      *reentrant.Mutex
	balance int
}

func (a *account) deposit(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance += n
}

func (a *account) transferFrom(b *account, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.deposit(-n)
	a.deposit(n) // locks again, at no cost
}

func ExampleMutex() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), "in-memory:2181",
		zksync.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			srv.ServeConn(server)
			return client, nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// Both accounts share the lock of their branch.
	branch := reentrant.NewMutex(zksync.NewMutex(s, "/locks/branch-17"))
	a, b := &account{mu: branch}, &account{mu: branch, balance: 100}
	a.transferFrom(b, 30)
	fmt.Println(a.balance, b.balance, branch.HoldCount())
	st, err := branch.State(context.Background())
	fmt.Println(st.State, err)
	// Output:
	// 30 70 0
	// free <nil>
}

// A cache whose methods call each other, as Java's ReentrantReadWriteLock allows.
func ExampleRWMutex() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	m := reentrant.NewRWMutex(zkrwmutex.New(s, "/locks/prices"))
	prices := map[string]int{}
	get := func(item string) int {
		m.RLock()
		defer m.RUnlock()
		return prices[item]
	}
	m.Lock()
	prices["tea"] = 3
	fmt.Println(get("tea")) // reads inside the write lock
	m.RLock()
	m.Unlock() // goes on reading, and nobody wrote in between
	fmt.Println(get("tea"), m.HoldCount(), m.ReadHoldCount())
	st, err := m.State(context.Background())
	fmt.Println(st.State, err)
	m.RUnlock()
	// Output:
	// 3
	// 3 0 1
	// read <nil>
}
