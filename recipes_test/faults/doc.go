// Package faults holds tests only: what a lock does when anything between it and the
// servers goes wrong.
//
//   - Small scenarios run once without a fault, to learn which requests they make, and then once
//     more for every request and every fault.
//   - A state machine does random things, faults among them, and compares with a plain model.
//   - Histories of random runs are checked for linearizability.
//
// Everything runs in virtual time on the in-process server. Set MENAGERIE_FULL=1 to have
// all pairs of faults tried and the random tests run longer.
package faults
