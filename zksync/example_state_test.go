package zksync_test

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

func ExampleState() {
	for _, state := range []zksync.State{zksync.Connected, zksync.Suspended, zksync.Lost, zksync.Closed} {
		fmt.Println(state)
	}
	// Output:
	// connected
	// suspended
	// lost
	// closed
}
