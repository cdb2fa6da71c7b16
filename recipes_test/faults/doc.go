// Package faults holds tests only: what a lock does when anything between it and the
// servers goes wrong.
//
//   - Small scenarios run once without a fault, to learn which requests they make, and then once
//     more for every request and every fault. Heartbeats do not count as requests, but where a scenario says so. A
//     fault that does not strike exactly once is a failure.
//   - A small use of every type and every option runs on every kind of server, and is struck there. docs/guarantees/faults.md has the table.
//   - A state machine does random things, faults among them, and compares with a plain model.
//   - Histories of random runs are checked for linearizability.
//
// Everything runs in virtual time on the in-process server. With MENAGERIE_FULL=1 all kinds of faults strike
// all types, all pairs of faults are tried, and the random tests run longer; "make faults" sets it.
package faults
