// Command menagerie shows, serves and uses distributed locks on ZooKeeper.
//
//	menagerie demo                    several processes take turns under one lock
//	menagerie serve                   an in-process ZooKeeper for trying things out
//	menagerie lock PATH -- CMD        runs CMD while holding the lock PATH
//	menagerie ls PATH                 who holds a lock and who waits for it
//	menagerie bench                   how fast locks are here, next to others
//
// docs/cli.md describes flags and exit codes.
package main

import (
	"os"
	"time"
)

// started is as close to the start of the process as a Go program gets: lock --wait
// counts from here, so that loading and connecting do not come on top.
var started = time.Now()

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
