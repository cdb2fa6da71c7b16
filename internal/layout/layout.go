// Package layout tells which type the nodes below a path belong to. docs/layout.md describes the nodes.
//
// The path of a lock is the directory of its entries, and the older meeting points keep their parameters in the data of
// the path itself. The path of any newer type has one child with the name of the type, and everything is below that.
// So a name tells the type, and an entry of a lock, which overwrites the data of its directory, destroys nothing.
package layout

import (
	"encoding/json"
	"fmt"
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
)

var typed = []string{Int64, Value, Sequence, Slots, Map, Set, Queue, Group, Cron, Durable, Promise}

// Typed is the type that a child of a path is named by; "" if there is none.
func Typed(children []string) string {
	for _, c := range children {
		// There may be many thousand entries of a lock, and none of them begins like a type.
		if strings.HasPrefix(c, "zk") && slices.Contains(typed, c) {
			return c
		}
	}
	return ""
}

// TypeOf is the type whose nodes are at a path that has this data and these children; "" if they tell nothing.
func TypeOf(data []byte, children []string) string {
	if t := Typed(children); t != "" {
		return t
	}
	for _, o := range older {
		if o.looks(data, children) {
			return o.name
		}
	}
	return ""
}

// older are the types that are told by the data of their path or by the names of several children. The order
// matters: the earlier ones say more.
var older = []struct {
	name  string
	looks func(data []byte, children []string) bool
}{
	{"zksemaphore", keys("permits", "capacity")},
	{"zklatch", keys("total")},
	{"zkbarrier", keys("parties")},
	{"zkphaser", keys("phase")},
	{"zkcond", func(data []byte, children []string) bool {
		return keys("signals")(data, nil) || slices.ContainsFunc(children, holds("-wait-"))
	}},
	{"zksync.Mutex", func(_ []byte, children []string) bool { return slices.ContainsFunc(children, holds("-lock-")) }},
	{"zkrwmutex", func(_ []byte, children []string) bool {
		return slices.ContainsFunc(children, holds("-__READ__")) || slices.ContainsFunc(children, holds("-__WRIT__"))
	}},
	{"zkwaitgroup", children("round", "dead")},
	{"zklatch.Gate", children("closed")},
	{"zkonce", children("lock", "result")},
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

// Refuse is the error of a type that was asked for at a path where the nodes of another type were found.
func Refuse(asked, found string) error {
	return fmt.Errorf("%w: the path is that of a %s, not of a %s; use another path", errs.ErrMisuse, found, asked)
}
