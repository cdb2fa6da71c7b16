// Package share lets the goroutines of one process share what the servers grant to the process. There are
// three forms: a lock that one goroutine holds at a time ([Cohort]), with hand-over inside the process,
// lingering and bounds; readers that hold together ([Readers]); and grants that are not shared ([Unshared]).
package share
