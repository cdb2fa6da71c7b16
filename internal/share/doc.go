// Package share is how goroutines of one process hold what the servers grant to the process: a lock that
// one of them holds at a time ([Cohort]), with hand-over inside the process, lingering and bounds; readers
// that hold together ([Readers]); and grants that are not shared ([Unshared]).
package share
