// The Java half: a class with a reentrant lock was ported to Go, while the Java half of the system still runs with
// Curator's InterProcessMutex on the same path.
//
//	class Account {
//	    private final InterProcessMutex mu = new InterProcessMutex(client, "/locks/branch-17");
//	    void deposit(int n) throws Exception {
//	        mu.acquire();
//	        try { balance += n; } finally { mu.release(); }
//	    }
//	    void transferFrom(Account b, int n) throws Exception {
//	        mu.acquire();
//	        try { b.deposit(-n); deposit(n); } finally { mu.release(); }   // acquires again
//	    }
//	}
//
// So that it runs without Java, the Java half is played here by a process that makes the nodes that Curator makes, with the
// client library go-zookeeper. The tests of the project (folder interop) run Curator itself.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
)

const branch = "/locks/branch-17"

// account is the class in Go.
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
	b.deposit(-n) // locks again, at no cost
	a.deposit(n)
}

func main() { cluster.Main(conduct, half) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	if err := c.All(ctx, "java", "go"); err != nil {
		return err
	}
	c.Say("the two halves were never inside at the same time: each would have failed")
	return nil
}

// half is one of the processes. Both use a file as the resource that the lock protects: it exists while one is inside.
func half(ctx context.Context, s *zksync.Session, name string) error {
	inside := os.TempDir() + "/javahalf-" + fmt.Sprint(os.Getppid())
	if name == "java" {
		return java(s.Conn(), inside)
	}
	mu := reentrant.NewMutex(zksync.NewMutex(s, branch)) // one for the path, shared by all who use it
	a, b := &account{mu: mu}, &account{mu: mu, balance: 100}
	for range 5 {
		mu.Lock()
		if err := stay(inside, func() { a.transferFrom(b, 10) }); err != nil {
			return err
		}
		fmt.Printf("transferred 10, %d levels deep; %d and %d now\n", 3, a.balance, b.balance)
		mu.Unlock()
	}
	return nil
}

// stay is a critical section. It fails if the other half is inside.
func stay(file string, f func()) error {
	inside, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("both are inside: %w", err)
	}
	f()
	time.Sleep(50 * time.Millisecond)
	inside.Close()
	return os.Remove(file)
}

// java plays Curator: it makes an entry with Curator's name, waits for the one before it, and deletes it.
func java(conn *zk.Conn, inside string) error {
	for dir := range strings.SplitSeq(branch, "/") {
		if at := strings.Index(branch, dir); dir != "" {
			_, _ = conn.Create(branch[:at+len(dir)], nil, 0, zk.WorldACL(zk.PermAll)) // it may exist
		}
	}
	for range 5 {
		node, err := conn.CreateProtectedEphemeralSequential(branch+"/lock-", []byte("10.0.0.7"), zk.WorldACL(zk.PermAll))
		if err != nil {
			return err
		}
		if err := turn(conn, node[strings.LastIndexByte(node, '/')+1:]); err != nil {
			return err
		}
		if err := stay(inside, func() { fmt.Println("is inside") }); err != nil {
			return err
		}
		if err := conn.Delete(node, -1); err != nil {
			return err
		}
	}
	return nil
}

// turn waits until no entry is before this one.
func turn(conn *zk.Conn, own string) error {
	for {
		names, _, err := conn.Children(branch)
		if err != nil {
			return err
		}
		number := func(name string) string { return name[len(name)-10:] }
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(number(a), number(b)) })
		at := slices.Index(names, own)
		if at == 0 {
			return nil
		}
		there, _, gone, err := conn.ExistsW(branch + "/" + names[at-1])
		if err != nil {
			return err
		}
		if there {
			<-gone
		}
	}
}
