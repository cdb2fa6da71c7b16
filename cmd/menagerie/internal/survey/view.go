// Package survey is what an operator sees: everything below a path, with how long it has been held and what is usual, who waits
// behind whom, deadlocks, holders that are probably dead, and the servers.
package survey

import (
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
)

// View is one picture of all that.
type View struct {
	Root string    `json:"root"`
	At   time.Time `json:"at"` // the newest instant at which it was still true, as far as is known
	// Outage says why nothing newer is known; empty while the servers answer. Then nothing may be decided by the view.
	Outage  string          `json:"outage,omitempty"`
	Servers *servers.Report `json:"servers,omitempty"` // nil before the first look at them
	Objects []*Object       `json:"objects"`           // by path
	Cycles  []Cycle         `json:"cycles"`            // deadlocks
	Denied  []string        `json:"denied,omitempty"`  // paths that may not be read
	Missing bool            `json:"missing,omitempty"` // the root does not exist
	Left    int             `json:"left,omitempty"`    // objects beyond the limit, which are not shown
}

// Object is a path of a recipe.
type Object struct {
	tree.Object
	Entries []*Entry `json:"entries"` // in place of those of tree.Object
	// Grants a second since the last view of a lock, -1 while unknown.
	Grants float64 `json:"grantsPerSecond"`
	Usual  Usual   `json:"usual"`
}

// Usual is how long a lock was held, by the holds that were seen to begin and to end.
type Usual struct {
	Holds  int      `json:"holds"` // how many were seen; without one the others are 0
	Median Millis   `json:"medianMs"`
	P99    Millis   `json:"p99Ms"`
	Counts []Bucket `json:"counts,omitempty"`
}

// Bucket counts the holds of at most a duration, and longer than the bucket before.
type Bucket struct {
	UpTo  Millis `json:"upToMs"`
	Holds int    `json:"holds"`
}

// Entry is a holder, a waiter or a party.
type Entry struct {
	tree.Row
	For    Millis  `json:"forMs"` // it has held or waited
	Ratio  float64 `json:"ratio"` // of For and the usual hold's median; 0 while unknown
	Ahead  string  `json:"ahead"` // the node of the entry that it waits for; empty if it holds
	Behind string  `json:"behind"`
	Stuck  bool    `json:"stuck"` // it waits for a deadlock to end
}

// Millis is a duration, in JSON as milliseconds.
type Millis time.Duration
