// Package layout tells which type the nodes below a path belong to. docs/layout.md describes the nodes.
//
// The path of a lock is the directory of its entries, and the older meeting points keep their parameters in the data of
// the path itself. The path of any newer type has one child with the name of the type, and everything is below that.
// So a name tells the type, and an entry of a lock, which overwrites the data of its directory, destroys nothing.
package layout

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// The types whose name is that of a child of their path.
const (
	Int64    = "zkatomic.Int64"
	Value    = "zkatomic.Value"
	Sequence = "zkatomic.Sequence"
	Slots    = "zkatomic.Slots"
	Map      = "zkmap"
	Set      = "zkmap.Set"
	Queue    = "zkqueue"
	Group    = "zkgroup"
	Cron     = "zkcron"
	Durable  = "zkdurable"
	Promise  = "zkonce.Promise"
	Rate     = "zkrate"
	Shards   = "zkshard"
)

// DeadLetters is the name of the directory below the node of a queue that has its dead letters. It exists since the first one.
const DeadLetters = "dead"

var typed = []string{Int64, Value, Sequence, Slots, Map, Set, Queue, Group, Cron, Durable, Promise, Rate, Shards}

// unmistakable are the names of children that nodes of no other use have. A lock that was taken at the path
// of such a type has overwritten its data, and these names remain.
var unmistakable = []struct {
	name string
	node *regexp.Regexp
}{
	{Latch, regexp.MustCompile(`^closed-of-\d+$`)},
	{Barrier, regexp.MustCompile(`^parties-\d+$`)},
	{DoubleBarrier, regexp.MustCompile(`^gathering-\d+$`)},
	{Phaser, regexp.MustCompile(`^wait-\d+$`)},
}

// Typed is the type that the name of a child tells by itself; "" if none does. A lock asks it: its own nodes tell none.
func Typed(children []string) string {
	for _, c := range children {
		switch {
		case strings.HasPrefix(c, "_c_"): // there may be many thousand entries of a lock
		case slices.Contains(typed, c):
			return c
		default:
			for _, u := range unmistakable {
				if u.node.MatchString(c) {
					return u.name
				}
			}
		}
	}
	return ""
}

// TypeOf is the type whose nodes are at a path that has this data and these children; "" if they tell nothing.
func TypeOf(data []byte, children []string) string {
	if t := Typed(children); t != "" {
		return t
	}
	for _, known := range [][]kind{first, older, foreign} {
		for _, k := range known {
			if k.looks(data, children) {
				return k.name
			}
		}
	}
	return ""
}

// The types that are told by their data, or by the names of several children.
const (
	Mutex         = "zksync.Mutex"
	Election      = "zkelection"
	RWMutex       = "zkrwmutex"
	Semaphore     = "zksemaphore"
	Cond          = "zkcond"
	Once          = "zkonce"
	Barrier       = "zkbarrier"
	DoubleBarrier = "zkbarrier.DoubleBarrier"
	Latch         = "zklatch"
	Gate          = "zklatch.Gate"
	Phaser        = "zkphaser"
	WaitGroup     = "zkwaitgroup"
	Flight        = "zkflight"
)

// kind is a type, and how its path looks.
type kind struct {
	name  string
	looks func(data []byte, children []string) bool
}

// older are these types. The order matters: the earlier ones say more.
var older = []kind{
	{Semaphore, keys("permits")},
	{Latch, keys("total")},
	{Barrier, keys("parties", "generation")},
	{DoubleBarrier, keys("parties")},
	{Phaser, keys("phase")},
	{Cond, func(data []byte, children []string) bool {
		return keys("signals")(data, nil) || slices.ContainsFunc(children, holds("-wait-"))
	}},
	{Mutex, entered("-lock-")},
	{RWMutex, entered("-__READ__")},
	{RWMutex, entered("-__WRIT__")},
	{Semaphore, entered("-permit-")},
	{Mutex, child(`[0-9a-f]{32}(?:-lock-|__r?lock__)-?\d{9,10}`)}, // kazoo's, which queue with ours
	{WaitGroup, children("round", "dead")},
	{Gate, children("closed")},
	{Once, func(data []byte, c []string) bool { // a child "lock" alone may be any lock
		return slices.Contains(c, "result") && children("lock", "result")(data, c)
	}},
}

// entered accepts the directory of a lock whose entries have this part in their names: one of them is there, or the last one has
// written its name to the data.
func entered(part string) func([]byte, []string) bool {
	entry := holds(part)
	return func(data []byte, children []string) bool {
		return entry(string(data)) || slices.ContainsFunc(children, entry)
	}
}

// holds accepts the name of an entry that has this part.
func holds(part string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, "_c_") && strings.Contains(name, part) }
}

// keys accepts data that is a JSON object with these keys.
func keys(names ...string) func([]byte, []string) bool {
	return func(data []byte, _ []string) bool {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return false
		}
		return !slices.ContainsFunc(names, func(n string) bool { _, there := object[n]; return !there })
	}
}

// children accepts a path that has children, all with one of these names.
func children(names ...string) func([]byte, []string) bool {
	return func(_ []byte, c []string) bool {
		return len(c) > 0 && !slices.ContainsFunc(c, func(n string) bool { return !slices.Contains(names, n) })
	}
}

// queues are the types whose entries stand in one queue at one path, and exclude each other.
var queues = []string{Mutex, RWMutex, Election}

// RefuseOther returns an error if the nodes at a path are those of another type than the one that was asked for. It accepts what
// it does not know.
func RefuseOther(asked string, data []byte, children []string) error {
	found := TypeOf(data, children)
	if found == "" || found == asked || slices.Contains(queues, found) && slices.Contains(queues, asked) {
		return nil
	}
	return Refuse(asked, found)
}

// RefuseAllBut is RefuseOther for a type that writes to the node, or that would ignore what is there: it also refuses
// data that it does not know.
func RefuseAllBut(asked string, data []byte, children []string) error {
	if len(data) > 0 && TypeOf(data, children) == "" {
		return errs.Misuse("the node has data that are not those of a %s, %s; use another path, or delete the data", asked, errs.Quote(string(data)))
	}
	return RefuseOther(asked, data, children)
}

// Refuse is the error of a type that was asked for at a path where the nodes of another type were found.
func Refuse(asked, found string) error {
	return errs.Misuse("the path is that of a %s, not of a %s; use another path", found, asked)
}
