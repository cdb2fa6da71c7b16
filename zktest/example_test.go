package zktest_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest"
)

// In a test, Run is all there is to do.
func ExampleRun() {
	TestSomething := func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		if _, err := conn.Create("/n", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		srv.CheckNode(t, "/n", nil)
	}
	_ = TestSomething
	// Output:
}

// Inside a bubble time is virtual: an hour passes in no time, and instants are exact.
func ExampleRun_synctest() {
	TestExpiry := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithTick(time.Second))
			conn := srv.Connect(t, 10*time.Second)
			time.Sleep(time.Hour) // heartbeats keep the session
			heal := srv.Partition(conn.SessionID())
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if len(srv.Sessions()) != 0 {
				t.Error("session should have expired")
			}
			heal()
		})
	}
	_ = TestExpiry
	// Output:
}

func ExampleStart() {
	srv := zktest.Start(zktest.WithTimeoutLimits(time.Second, time.Minute))
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	path, err := conn.Create("/n-", []byte("hello"), zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output: /n-0000000000 <nil>
}

func ExampleServer() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	srv.Create("/config", []byte("v1"), 0, 0) // without a client
	_, _, events, _ := conn.GetW("/config")
	srv.Set("/config", []byte("v2"))
	fmt.Println((<-events).Type, srv.Requests(), srv.Notifications())
	fmt.Print(srv.Tree())
	// Output:
	// EventNodeDataChanged 1 1
	// /
	//   /config "v2"
}

func ExampleServer_SetSequence() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Create("/q", nil, 0, 0)
	srv.SetSequence("/q", math.MaxInt32)
	fmt.Println(srv.Create("/q/a-", nil, zk.FlagSequence, 0))
	fmt.Println(srv.Create("/q/b-", nil, zk.FlagSequence, 0)) // one after the other, the limit repeats
	// Output:
	// /q/a-2147483647
	// /q/b-2147483647
}

func ExampleRule() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	srv.Create("/locks", nil, 0, 0)
	srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
	for range 2 {
		_, err := conn.Create("/locks/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		fmt.Println(err)
	}
	fmt.Println(srv.Children("/locks")) // the second one is there, although its creator does not know
	// Output:
	// <nil>
	// zk: connection closed
	// [a-0000000000 a-0000000001]
}

func ExampleInterception() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	creates := srv.Intercept(zktest.On(zktest.Create, "/slow").Hold())
	created := make(chan error)
	go func() {
		_, err := conn.Create("/slow", nil, 0, zk.WorldACL(zk.PermAll))
		created <- err
	}()
	_ = creates.WaitHeld(context.Background())
	fmt.Println("held:", creates.Held(), srv.Children("/"))
	creates.Release()
	fmt.Println("released:", <-created, srv.Children("/"))
	// Output:
	// held: 1 [zookeeper]
	// released: <nil> [slow zookeeper]
}

func ExampleVerdict() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	remove := srv.InterceptFunc(func(r *zktest.Request) zktest.Verdict {
		if r.Op == zktest.GetData {
			return zktest.Verdict{Fate: zktest.Fail, Code: -102}
		}
		return zktest.Verdict{}
	})
	_, _, err := conn.Get("/")
	fmt.Println(err)
	remove()
	_, _, err = conn.Get("/")
	fmt.Println(err)
	// Output:
	// zk: not authenticated
	// <nil>
}

func ExampleRequest() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	_, _ = conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
	_, _ = conn.Create("/n", nil, 0, zk.WorldACL(zk.PermAll))
	for _, r := range srv.Log() {
		fmt.Println(r.Op, r.Paths, r.Zxid, r.Code)
	}
	// Output:
	// connect [] 1 0
	// create [/n] 2 0
	// create [/n] 3 -110
}

func ExampleNode() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Create("/n", []byte("x"), 0, 0)
	n, ok := srv.Node("/n")
	fmt.Println(ok, string(n.Data), n.Stat.Czxid, n.ACL)
	// Output: true x 1 [{31 world anyone}]
}

func ExampleSession() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	_, _ = conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	for _, s := range srv.Sessions() {
		fmt.Println(s.ID == conn.SessionID(), s.Timeout, s.Ephemerals, s.Connected)
	}
	// Output: true 10s [/e] true
}

func ExampleTxn() {
	srv := zktest.Start()
	defer srv.Close()
	srv.OnCommit(func(x zktest.Txn) {
		for _, c := range x.Changes {
			if c.Kind == zktest.Deleted {
				fmt.Println(x.Zxid, x.Op, "deletes", c.Path)
			}
		}
	})
	srv.Create("/n", nil, 0, 0)
	srv.Delete("/n")
	// Output: 2 delete deletes /n
}

// dial returns a client over TCP that has a session, and a function that closes it.
func dial(srv *zktest.Server) (*zk.Conn, func()) {
	conn, events, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		panic(err)
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn, func() {
		conn.Close()
		for range events {
		}
	}
}
