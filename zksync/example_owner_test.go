package zksync_test

import (
	"fmt"

	"github.com/go-menagerie/menagerie/zksync"
)

func ExampleOwner() {
	show := func(o zksync.Owner) string {
		if o.Host == "" { // another library's node: all that is known is its data
			return o.Name
		}
		return fmt.Sprintf("%s on %s, pid %d", o.Name, o.Host, o.PID)
	}
	fmt.Println(show(zksync.Owner{Host: "db-1", PID: 4711, Name: "nightly"}))
	fmt.Println(show(zksync.Owner{Name: "192.168.7.31"}))
	// Output:
	// nightly on db-1, pid 4711
	// 192.168.7.31
}
