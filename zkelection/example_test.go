package zkelection_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A scheduler that must run exactly once in the cluster. Every process runs this; one
// of them schedules, and another takes over when it dies or is cut off.
func ExampleElection_Run() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	e := zkelection.New(s, "/elections/scheduler", zkelection.Candidate{ID: "web-1", Data: []byte("10.0.0.7:8080")})
	err = e.Run(ctx, func(ctx context.Context, lease *zksync.Lease) error {
		leader, err := e.Leader(ctx) // whoever wants to talk to the scheduler asks like this
		fmt.Println(leader.ID, string(leader.Data), err)
		// Schedule until ctx ends: then another one may. Every write carries lease.Token().
		return nil // resigns
	})
	fmt.Println(err)
	// Output:
	// web-1 10.0.0.7:8080 <nil>
	// <nil>
}

// Without a function: campaign, work while leading, resign.
func ExampleElection() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	e := zkelection.New(s, "/elections/cron", zkelection.Candidate{ID: "cron-1"})
	lease, err := e.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader, err := range e.Observe(ctx) {
		fmt.Println(leader.ID, err)
		break
	}
	st, err := e.State(ctx)
	fmt.Println(st.State, st.Entries[0].ID, err)
	fmt.Println(lease.Unlock())
	// Output:
	// cron-1 <nil>
	// led cron-1 <nil>
	// <nil>
}

func ExampleCandidate() {
	c := zkelection.Candidate{ID: "web-1", Data: []byte("10.0.0.7:8080")}
	fmt.Printf("%s at %s\n", c.ID, c.Data)
	// Output: web-1 at 10.0.0.7:8080
}

// A leader tells the others how far it is. The next leader can go on from there.
func ExampleElection_SetData() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	e := zkelection.New(s, "/elections/importer", zkelection.Candidate{ID: "web-1", Data: []byte("starting")})
	lease, err := e.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.SetData(ctx, []byte("at line 1200")))
	leader, err := e.Leader(ctx)
	fmt.Println(leader.ID, string(leader.Data), err)
	fmt.Println(lease.Unlock())
	// Output:
	// <nil>
	// web-1 at line 1200 <nil>
	// <nil>
}
