// Command menagerie shows, serves and uses distributed locks on ZooKeeper.
//
//	menagerie demo                    several processes take turns under one lock
//	menagerie serve                   an in-process ZooKeeper for experiments
//	menagerie lock PATH -- CMD        runs CMD while holding the lock PATH
//	menagerie rlock PATH -- CMD       runs CMD while holding it for reading
//	menagerie sem PATH -- CMD         runs CMD while holding permits of a semaphore
//	menagerie elect PATH -- CMD       runs CMD as the leader of an election
//	menagerie once PATH -- CMD        runs CMD unless a process in the cluster has
//	menagerie cron PATH -- CMD        runs CMD at its times, each time in one process
//	menagerie barrier PATH -- CMD     runs CMD when all have arrived
//	menagerie latch down|wait PATH    counts an event, or waits until all were counted
//	menagerie gate close|open|wait PATH
//	                                  holds processes up, or waits until it is open
//	menagerie wait PATH               waits until no process holds or waits
//	menagerie queue put|take|receive  puts an element into a queue, takes one, or runs CMD on one
//	menagerie ls PATH                 what is at PATH: who holds, who waits
//	menagerie top [PATH]              the same live: what is held longer than usual, who waits
//	menagerie deadlocks [PATH]        who waits for whom, and deadlocks
//	menagerie release PATH            removes a holder or a waiter
//	menagerie deadlocks [PATH]        which process waits for which other
//	menagerie status                  the servers, and what is wrong with them
//	menagerie bench                   measures our lock, go-zookeeper's and the floor
//	menagerie version                 which build this is
//	menagerie man DIR                 writes manual pages
//
// docs/commands.md describes flags and exit codes.
package main

import "os"

func main() {
	stderr := newMessages(standardError())
	end(execute(os.Args[1:], os.Stdout, stderr), stderr)
}
