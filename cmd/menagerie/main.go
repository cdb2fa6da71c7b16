// Command menagerie shows, serves and uses distributed locks on ZooKeeper.
//
//	menagerie demo                    several processes take turns under one lock
//	menagerie serve                   an in-process ZooKeeper for trying things out
//	menagerie lock PATH -- CMD        runs CMD while holding the lock PATH
//	menagerie rlock PATH -- CMD       runs CMD while holding it for reading
//	menagerie sem PATH -- CMD         runs CMD while holding permits of a semaphore
//	menagerie elect PATH -- CMD       runs CMD as the leader of an election
//	menagerie once PATH -- CMD        runs CMD unless somebody in the cluster has
//	menagerie barrier PATH -- CMD     runs CMD when all have come
//	menagerie ls PATH                 what is at PATH: who holds, who waits
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
