package zksync_test

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

func ExampleKind() {
	for _, kind := range []zksync.Kind{zksync.KindLock, zksync.KindRead, zksync.KindWrite, zksync.KindPermit} {
		fmt.Println(kind)
	}
	// Output:
	// lock
	// read
	// write
	// permit
}
