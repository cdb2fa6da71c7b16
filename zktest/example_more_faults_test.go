package zktest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest"
)

// inExample runs a test in virtual time with a server and a client.
func inExample(f func(srv *zktest.Server, conn *zk.Conn)) {
	goTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			f(srv, srv.Connect(t, 10*time.Second))
		})
	})
}

// A client that shall also work with old servers.
func ExampleWithVersion() {
	goTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithVersion("3.4"))
			conn := srv.Connect(t, 10*time.Second)
			_, err := conn.CreateContainer("/box", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
			fmt.Println(err)
			time.Sleep(2 * time.Second)
			fmt.Println("connections:", srv.TotalConnections()) // the first was closed
		})
	})
	// Output:
	// unknown error: -6
	// connections: 2
	// ok
}

// The session is over, and its client cannot know until the network is back.
func ExampleServer_ExpireSilently() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		_, _ = conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		id := conn.SessionID()
		heal := srv.ExpireSilently(id)
		fmt.Println(srv.Children("/"), conn.SessionID() == id)
		heal()
		time.Sleep(10 * time.Second)
		fmt.Println("another session:", conn.SessionID() != id)
	})
	// Output:
	// [zookeeper] true
	// another session: true
	// ok
}

func ExampleServer_Disconnect() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		_, _ = conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		id := conn.SessionID()
		srv.Disconnect(id)
		synctest.Wait()
		fmt.Println(conn.SessionID() == id, srv.Children("/"))
	})
	// Output:
	// true [e zookeeper]
	// ok
}

// What the client sends arrives and is applied; no answer does.
func ExampleServer_DropReplies() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		heal := srv.DropReplies(conn.SessionID())
		_, err := conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		heal()
		fmt.Println(err, srv.Children("/"))
	})
	// Output:
	// zk: connection closed [n zookeeper]
	// ok
}

// What the client sends is lost with the connection that it gives up. The server hears nothing.
func ExampleServer_DropRequests() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		heal := srv.DropRequests(conn.SessionID())
		_, err := conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		heal()
		fmt.Println(err, srv.Children("/"))
	})
	// Output:
	// zk: connection closed [zookeeper]
	// ok
}

func ExampleServer_Delay() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		srv.Delay(conn.SessionID(), 20*time.Millisecond, 30*time.Millisecond)
		start := time.Now()
		_, _, err := conn.Exists("/")
		fmt.Println(err, time.Since(start))
	})
	// Output:
	// <nil> 50ms
	// ok
}

// A closed port: who is connected stays.
func ExampleServer_Refuse() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		allow := srv.Refuse()
		_, _, err := conn.Exists("/")
		fmt.Println(err)
		srv.Disconnect(conn.SessionID())
		synctest.Wait()
		fmt.Println("connected:", srv.Sessions()[0].Connected)
		allow()
		time.Sleep(2 * time.Second)
		fmt.Println("connected:", srv.Sessions()[0].Connected)
	})
	// Output:
	// <nil>
	// connected: false
	// connected: true
	// ok
}

// A server that has lost its disk refuses clients that have seen more than it has.
func ExampleServer_RestartEmpty() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		_, _ = conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		srv.RestartEmpty()
		time.Sleep(time.Second)
		fmt.Println(srv.Children("/"), len(srv.Sessions()))
		srv.SetZxid(100) // now it seems to be as new as they are
		time.Sleep(10 * time.Second)
		fmt.Println(len(srv.Sessions()))
	})
	// Output:
	// [zookeeper] 0
	// 1
	// ok
}

// Every request fails until further notice; heartbeats go on.
func ExampleServer_SetError() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		restore := srv.SetError(zktest.CodeNoAuth) // not authorized
		_, err := conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		fmt.Println(err)
		time.Sleep(time.Minute)
		restore()
		_, err = conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		fmt.Println(err)
	})
	// Output:
	// zk: not authenticated
	// <nil>
	// ok
}

// The last transaction ids of an epoch, as after four thousand million writes. A server on its own counts on.
func ExampleServer_SetZxid() {
	srv := zktest.Start()
	defer srv.Close()
	srv.SetZxid(0xfffffffe)
	for range 2 {
		srv.Set("/", nil)
		fmt.Printf("%#x\n", srv.Zxid())
	}
	// Output:
	// 0xffffffff
	// 0x100000000
}

func ExampleRule_Delay() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Create, "/slow/**").Delay(time.Minute))
		srv.Create("/slow", nil, 0, 0)
		start := time.Now()
		_, err := conn.Create("/slow/n", nil, 0, zk.WorldACL(zk.PermAll))
		fmt.Println(err, time.Since(start))
	})
	// Output:
	// <nil> 1m0s
	// ok
}

// Everybody else sees the change before the one who made it hears that it was made.
func ExampleRule_DelayReply() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		srv.Intercept(zktest.On(zktest.Create, "/n").DelayReply(2 * time.Second))
		srv.OnCommit(func(x zktest.Txn) {
			for _, c := range x.Changes {
				fmt.Println(c.Path, "made at", x.Time.Second())
			}
		})
		_, err := conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
		fmt.Println("answered at", time.Now().Second(), err)
	})
	// Output:
	// /n made at 0
	// answered at 2 <nil>
	// ok
}

// A create lies in the queue of a server while its client, on a new connection, looks for the node. It is applied all the same.
func ExampleRule_Queued() {
	inExample(func(srv *zktest.Server, conn *zk.Conn) {
		late := srv.Intercept(zktest.On(zktest.Create, "/n").Hold().Queued())
		go func() { _, _ = conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll)) }()
		_ = late.WaitHeld(context.Background())
		srv.Disconnect(conn.SessionID())
		synctest.Wait() // it has come back
		fmt.Println(srv.Children("/"))
		late.Release()
		synctest.Wait()
		fmt.Println(srv.Children("/"))
	})
	// Output:
	// [zookeeper]
	// [n zookeeper]
	// ok
}

// With another seed the clients would hear in another order.
func ExampleWithReordering() {
	goTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithReordering(100*time.Millisecond), zktest.WithSeed(4))
			for name := range 3 {
				conn := srv.Connect(t, 10*time.Second)
				_, _, events, _ := conn.ExistsW("/n")
				go func() {
					<-events
					fmt.Println(name, "hears of it")
				}()
			}
			srv.Create("/n", nil, 0, 0)
			time.Sleep(100 * time.Millisecond)
		})
	})
	// Unordered output:
	// 0 hears of it
	// 1 hears of it
	// 2 hears of it
	// ok
}
