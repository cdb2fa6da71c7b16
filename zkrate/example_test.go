package zkrate_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func ExampleLimiter() {
	srv := zktest.Start()
	defer srv.Close()
	s, err := zksync.Connect(context.Background(), srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	l := zkrate.New(s, "/rates/partner", 0.1, 2) // in all processes: one event in ten seconds, two at once
	fmt.Println(l.Allow(), l.Allow(), l.Allow())
	// Output: true true false
}
