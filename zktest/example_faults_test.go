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

// The reply of the second create is lost: its creator does not know that it is there.
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
	fmt.Println(srv.Children("/locks"))
	// Output:
	// <nil>
	// zk: connection closed
	// [a-0000000000 a-0000000001]
}

// Any interleaving of two clients can be made step by step: here one reads, the other writes, and the first
// writes what it has read.
func ExampleInterception() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Load(map[string]string{"/counter": "1"})
	slow, doneSlow := dial(srv)
	defer doneSlow()
	fast, doneFast := dial(srv)
	defer doneFast()

	writes := srv.Intercept(zktest.On(zktest.SetData, "/counter").Of(slow.SessionID()).Hold())
	result := make(chan error)
	go func() {
		_, stat, _ := slow.Get("/counter")
		_, err := slow.Set("/counter", []byte("2"), stat.Version)
		result <- err
	}()
	_ = writes.WaitHeld(context.Background()) // it has read, and is about to write
	_, _ = fast.Set("/counter", []byte("7"), -1)
	writes.Release()
	fmt.Println(<-result)
	// Output: zk: version conflict
}

// A rule that has never struck fails the test at its end, because the test has not tested what the rule is for. Here that is right.
func ExampleRule_Maybe() {
	TestCreate := func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		srv.Intercept(zktest.On(zktest.Delete, "/**").LoseReply().Maybe()) // clean-up is optional
		if _, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	goTest(TestCreate)
	// Output: ok
}

// A function can decide about every request.
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

func ExampleFate() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	fates := []zktest.Fate{zktest.LoseRequest, zktest.LoseReply}
	srv.InterceptFunc(func(r *zktest.Request) zktest.Verdict {
		if r.Op != zktest.Create || len(fates) == 0 {
			return zktest.Verdict{}
		}
		fate := fates[0]
		fates = fates[1:]
		return zktest.Verdict{Fate: fate}
	})
	for _, path := range []string{"/a", "/b"} {
		_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		_, there := srv.Node(path)
		fmt.Println(err, there)
		_ = srv.WaitFor(context.Background(), func() bool { return srv.Sessions()[0].Connected })
	}
	// Output:
	// zk: connection closed false
	// zk: connection closed true
}

// A session ends on the server; its client learns when it reconnects.
func ExampleServer_Expire() {
	TestLoss := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			conn := srv.Connect(t, 10*time.Second)
			id := conn.SessionID()
			_, err := conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			if err != nil {
				t.Fatal(err)
			}
			srv.Expire(id)
			zktest.CheckNoNode(t, srv, "/e")
			synctest.Wait()
			fmt.Println("another session:", conn.SessionID() != id)
		})
	}
	goTest(TestLoss)
	// Output:
	// another session: true
	// ok
}

// A partition is silence: the client finds out by itself, before its session may end.
func ExampleServer_Partition() {
	TestPartition := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			conn := srv.Connect(t, 9*time.Second)
			heal := srv.Partition(conn.SessionID())
			time.Sleep(time.Second)
			start := time.Now()
			_, _, err := conn.Exists("/")
			fmt.Println(err, time.Since(start) < 9*time.Second)
			heal()
			_, _, err = conn.Exists("/")
			fmt.Println(err)
		})
	}
	goTest(TestPartition)
	// Output:
	// zk: connection closed true
	// <nil>
	// ok
}

// A server that hangs takes connections and answers nothing.
func ExampleServer_Freeze() {
	TestHang := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			conn := srv.Connect(t, 10*time.Second)
			thaw := srv.Freeze()
			time.AfterFunc(2*time.Second, thaw)
			start := time.Now()
			_, _, err := conn.Exists("/")
			fmt.Println(err, time.Since(start))
		})
	}
	goTest(TestHang)
	// Output:
	// <nil> 2s
	// ok
}

// A crash keeps data and sessions, and the address.
func ExampleServer_Restart() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	_, _ = conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	id := conn.SessionID()
	srv.Restart()
	_ = srv.WaitFor(context.Background(), func() bool { return srv.Sessions()[0].Connected })
	_, _, err := conn.Exists("/e")
	fmt.Println(err, conn.SessionID() == id, srv.Children("/"))
	// Output: <nil> true [e zookeeper]
}
