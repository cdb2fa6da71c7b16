package zkwatch_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// session opens a session on a server in this process.
func session() (s *zksync.Session, end func()) {
	srv := zktest.Start()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		panic(err)
	}
	return s, func() { s.Close(); srv.Close() }
}

// A service keeps its address while it runs, and another one follows it.
func ExampleKept() {
	s, end := session()
	defer end()
	ctx := context.Background()
	k := zkwatch.Keep(s, "/services/billing", []byte("10.0.0.1"))
	if err := k.SetData(ctx, []byte("10.0.0.2")); err != nil { // waits until the node is there
		fmt.Println(err)
		return
	}
	for n, err := range zkwatch.Data(ctx, s, "/services/billing") {
		if err != nil || !n.OK {
			fmt.Println("away", err)
			return
		}
		fmt.Printf("%s\n", n.Data)
		if err := k.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 10.0.0.2
	// away <nil>
}

func ExampleNode() {
	s, end := session()
	defer end()
	for n, err := range zkwatch.Data(context.Background(), s, "/config") {
		fmt.Println(n.Path, n.OK, err)
		break // the next step would wait for a change
	}
	// Output: /config false <nil>
}

// A copy of the configuration is kept up to date in memory.
func ExampleTree() {
	s, end := session()
	defer end()
	ctx := context.Background()
	k := zkwatch.Keep(s, "/config/limit", []byte("10"))
	if err := k.SetData(ctx, []byte("20")); err != nil {
		fmt.Println(err)
		return
	}
	t := zkwatch.NewTree(s, "/config")
	if err := t.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	n, _ := t.Get("/config/limit")
	fmt.Println(t.Children("/config"), string(n.Data))
	// Output: [limit] 20
}

func ExampleEvent() {
	s, end := session()
	defer end()
	ctx := context.Background()
	k := zkwatch.Keep(s, "/members/a", nil)
	if err := k.SetData(ctx, []byte("here")); err != nil {
		fmt.Println(err)
		return
	}
	t := zkwatch.NewTree(s, "/members")
	if err := t.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	for ev, err := range t.Changes(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(ev.Kind, ev.Node.Path)
		if ev.Kind == zkwatch.Initialized {
			_ = k.Close()
		}
		if ev.Kind == zkwatch.Deleted {
			return
		}
	}
	// Output:
	// created /members
	// created /members/a
	// initialized /members
	// deleted /members/a
}
