package zktest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest"
)

// The test looks inside, and changes things, without a client.
func ExampleServer() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	srv.Create("/config", []byte("v1"), 0, 0)
	_, _, events, _ := conn.GetW("/config")
	srv.Set("/config", []byte("v2"))
	fmt.Println((<-events).Type, srv.Requests(), srv.Notifications())
	fmt.Print(srv.Tree())
	// Output:
	// EventNodeDataChanged 1 1
	// /
	//   /config "v2"
}

// A fixture is a map, and so is what a test finds in the end.
func ExampleServer_Load() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Load(map[string]string{
		"/app/config":    "v1",
		"/app/workers/a": "",
	})
	found := srv.Contents("/app")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		fmt.Printf("%s %q\n", path, found[path])
	}
	srv.DeleteAll("/app/workers")
	fmt.Print(srv.Tree())
	// Output:
	// /app ""
	// /app/config "v1"
	// /app/workers ""
	// /app/workers/a ""
	// /
	//   /app
	//     /config "v1"
}

// Everything there is to see, for a person who wonders what happened.
func ExampleServer_Dump() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Load(map[string]string{"/locks/a": "", "/data": "\x00\x01\x02"})
	for line := range strings.Lines(srv.Dump()) {
		if strings.HasPrefix(line, "tree:") || strings.HasPrefix(strings.TrimSpace(line), "/") {
			fmt.Print(line)
		}
	}
	// Output:
	// tree:
	// /
	//   /data 3 bytes 000102
	//   /locks
	//     /a
}

func ExampleServer_SetSequence() {
	srv := zktest.Start()
	defer srv.Close()
	srv.Create("/q", nil, 0, 0)
	srv.SetSequence("/q", 2147483647)
	fmt.Println(srv.Create("/q/a-", nil, zk.FlagSequence, 0))
	fmt.Println(srv.Create("/q/b-", nil, zk.FlagSequence, 0)) // one after the other, the limit repeats
	// Output:
	// /q/a-2147483647
	// /q/b-2147483647
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
	// connect [] 1 ok
	// create [/n] 2 ok
	// create [/n] 3 nodeExists
}

// How many requests something costs is a number that a test can hold on to.
func ExampleOp() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	_, _ = conn.Multi(
		&zk.CreateRequest{Path: "/a", Acl: zk.WorldACL(zk.PermAll)},
		&zk.CreateRequest{Path: "/b", Acl: zk.WorldACL(zk.PermAll)},
	)
	_, _, _ = conn.Children("/")
	fmt.Println(srv.Requests(), srv.RequestsBy(zktest.Multi), srv.RequestsBy(zktest.Create), srv.RequestsBy(zktest.GetChildren))
	// Output: 2 1 0 1
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

func ExampleWatch() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	_, _, _ = conn.Exists("/") // by then the library has looked which watches it must set again, and races with nobody
	_, _, _, _ = conn.ChildrenW("/")
	_, _, _, _ = conn.ExistsW("/leader")
	for _, w := range srv.WatchList() {
		fmt.Println(w.Path, w.Kind, w.Session == conn.SessionID())
	}
	// Output:
	// / children true
	// /leader data true
}

func ExampleWatchKind() {
	fmt.Println(zktest.DataWatch, zktest.ChildWatch, zktest.PersistentWatch, zktest.RecursiveWatch)
	// Output: data children persistent recursive
}

// A hook sees every transaction at its instant, before any reply or event of it.
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

func ExampleChange() {
	srv := zktest.Start()
	defer srv.Close()
	names := map[zktest.ChangeKind]string{
		zktest.Created: "created", zktest.DataChanged: "changed", zktest.ACLChanged: "protected", zktest.Deleted: "deleted",
	}
	srv.OnCommit(func(x zktest.Txn) {
		for _, c := range x.Changes {
			fmt.Println(names[c.Kind], c.Path, "of transaction", c.Czxid)
		}
	})
	srv.Create("/n", nil, 0, 0)
	srv.Set("/n", []byte("x"))
	srv.SetACL("/n", zk.WorldACL(zk.PermRead)...)
	srv.Delete("/n")
	// Output:
	// created /n of transaction 1
	// changed /n of transaction 1
	// protected /n of transaction 1
	// deleted /n of transaction 1
}
