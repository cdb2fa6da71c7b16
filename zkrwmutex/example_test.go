package zkrwmutex_test

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A cache on shared storage that many processes read, and one of them refills: it
// goes on reading what it has just written, without letting anybody change it in between.
func ExampleRWMutex() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	prices := map[string]int{} // stands for the shared storage
	rw := zkrwmutex.New(s, "/locks/prices")

	write, err := rw.LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	prices["tea"] = 3 // refill
	read, err := rw.Downgrade(ctx, write)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(prices["tea"], write.Err(), read.Valid())
	st, err := rw.State(ctx)
	fmt.Println(st.State, len(st.Entries), err)
	_ = read.Unlock()

	rw.RLock() // as with sync.RWMutex
	fmt.Println(prices["tea"])
	rw.RUnlock()
	// Output:
	// 3 zksync: lease released true
	// read 1 <nil>
	// 3
}
