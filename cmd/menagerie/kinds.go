package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// kind is a kind of recipe. ls finds it out by the nodes, which docs/layout.md describes.
type kind struct {
	name string
	// looks reports whether a node looks like that.
	looks func(n *node) bool
	// describe reads the state. It may find out that the node is of another kind, and set that.
	describe func(ctx context.Context, l *look, n *node, o *object) error
	// part reports whether a child belongs to it. Any other child is a thing of its own.
	part func(child string) bool
}

// kinds are tried in this order: first those that are named by a child, then those that have data in the base node, then
// those that are known only by the names of their children. The last one takes everything else.
var kinds = append(typedKinds, []kind{
	{"system", func(n *node) bool { return n.path == "/zookeeper" || strings.HasPrefix(n.path, "/zookeeper/") }, describeSystem, any_},
	{"semaphore", hasKeys("permits", "capacity?", "most?"), describeSemaphore, named("queue")},
	{"latch", hasKeys("total", "open?"), describeLatch, like(`counts|closed-of-\d+`)},
	{"barrier", hasKeys("parties", "generation", "tolerant?", "broken?"), describeBarrier, like(`parties-\d+|open-\d+|ended-\d+|turns?`)},
	{"double barrier", hasKeys("parties"), describeDouble, like(`parties|gathering-\d+|open-[0-9a-f]+|turns?`)},
	{"phaser", hasKeys("phase", "terminated?", "action?"), describePhaser, like(`open|action|wait-\d+|phase-\d+|turns?`)},
	{"condition", isCondition, describeCondition, like(waitName)},
	{"lock", isQueue, describeQueue, partOfQueue},
	{"wait group", only("round", "dead"), describeWaitGroup, named("round", "dead")},
	{"gate", only("closed"), describeGate, named("closed")},
	{"once", only("lock", "result"), describeOnce, named("lock", "result")},
	{"flight key", isFlightKey, describeFlightKey, named("flight")},
	{"node", func(n *node) bool { return len(n.children) == 0 }, describeNode, none},
	{"directory", func(*node) bool { return true }, describeDirectory, none},
}...)

// describe returns the kind and the state of n.
func (l *look) describe(ctx context.Context, n *node) (*object, error) {
	for _, k := range kinds {
		if !k.looks(n) {
			continue
		}
		o := &object{Path: n.path, Kind: k.name, Entries: []contenderRow{}}
		for _, child := range n.children {
			if !k.part(child) {
				o.rest = append(o.rest, child)
			}
		}
		err := k.describe(ctx, l, n, o)
		if errors.Is(err, zk.ErrNoAuth) { // of a part of it, so nothing is known
			o.State, o.Detail, err = "denied", denied, nil
		}
		return o, err
	}
	panic("menagerie: a node of no kind") // the last one is for all
}

// hasKeys accepts a node whose data is a JSON object with these keys and no others. Keys with a
// question mark may be missing.
func hasKeys(keys ...string) func(*node) bool {
	return func(n *node) bool {
		var object map[string]json.RawMessage
		if json.Unmarshal(n.data, &object) != nil || object == nil {
			return false
		}
		for _, k := range keys {
			name, optional := strings.CutSuffix(k, "?")
			if _, there := object[name]; !there && !optional {
				return false
			}
			delete(object, name)
		}
		return len(object) == 0
	}
}

// only accepts a node that has children, all with one of these names.
func only(names ...string) func(*node) bool {
	return func(n *node) bool {
		return len(n.children) > 0 && !slices.ContainsFunc(n.children, func(c string) bool { return !slices.Contains(names, c) })
	}
}

func named(names ...string) func(string) bool {
	return func(child string) bool { return slices.Contains(names, child) }
}

func like(pattern string) func(string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString
}

func any_(string) bool { return true }
func none(string) bool { return false }

func isQueue(n *node) bool {
	return slices.ContainsFunc(n.children, func(c string) bool { return entryName.MatchString(c) || heldMark.MatchString(c) })
}

// heldMark is what a holder with a lock delay leaves beside its entry: it stays if the hold is lost.
var heldMark = regexp.MustCompile(`^held-[0-9a-f-]{36}-([0-9a-zµ.]+)_lock-2147483647$`)

// partOfLock reports whether a node stands beside the entries: such a mark, or a request to give the lock up.
var partOfLock = like(`(held|revoke)-.*_lock-2147483647`)

func partOfQueue(child string) bool { return entryName.MatchString(child) || partOfLock(child) }

const waitName = `_c_[0-9a-f-]{32,36}-wait-[0-9a-f]{16}-[0-9a-f]{8}`

var isWaiter = like(waitName)

func isCondition(n *node) bool {
	return slices.ContainsFunc(n.children, isWaiter) || hasKeys("signals", "by?")(n)
}

// isFlightKey accepts a node that has a flight's queue, and no data or a result.
func isFlightKey(n *node) bool { return only("flight")(n) && (len(n.data) == 0 || holdsResult(n)) }

// holdsResult reports whether a node's data are the newest result of a flight's run.
func holdsResult(n *node) bool {
	return hasKeys("by", "token", "value?", "error?", "panic?", "misuse?")(n)
}

// decoded reads the data of a base node, whose keys have been looked at.
func decoded[T any](n *node) (v T) {
	_ = json.Unmarshal(n.data, &v) // a value of another type stays zero
	return v
}

// denied is the detail of a node that we may not read.
const denied = "may not be read by us: see --auth"

func describeSystem(_ context.Context, _ *look, n *node, o *object) error {
	o.State, o.Detail = "system", "the servers' own"
	return nil
}

func describeNode(_ context.Context, _ *look, n *node, o *object) error {
	owner := ownerOf(n.data)
	who := contenderRow{Owner: ownerRow{Host: owner.Host, PID: owner.PID, Name: owner.Name}}
	switch {
	case n.denied:
		o.State, o.Detail = "denied", denied
	case n.stat.EphemeralOwner != 0 && (owner.Host != "" || owner.PID != 0):
		o.State, o.Detail = "ephemeral", fmt.Sprintf("%s of %s, of session %s", plural(int64(n.size), "byte"), who.who(), sessionText(n.stat.EphemeralOwner))
	case n.stat.EphemeralOwner != 0:
		o.State, o.Detail = "ephemeral", fmt.Sprintf("%s, of session %s", plural(int64(n.size), "byte"), sessionText(n.stat.EphemeralOwner))
	case n.size > 0:
		o.State, o.Detail = "node", fmt.Sprintf("%s of data, nothing below", plural(int64(n.size), "byte"))
	default:
		// Unused locks, elections, open gates and others look the same: an empty directory.
		o.Kind, o.State, o.queue = "empty", "empty", true
		o.Detail = "empty: a free lock or election, an open gate, or anything else"
	}
	return nil
}

func describeDirectory(ctx context.Context, l *look, n *node, o *object) error {
	o.State, o.Detail = "directory", plural(int64(len(n.children)), "node")+" below"
	if n.denied {
		o.State, o.Detail = "denied", denied
	}
	// A flight is known only by its children, the keys.
	keys, unused := 0, 0
	if len(n.data) == 0 && len(n.children) <= maxKeys {
		err := l.each(ctx, n, n.children, func(c *node) error {
			switch {
			case isFlightKey(c):
				keys++
			case len(c.data) == 0 && len(c.children) == 0 && c.stat.EphemeralOwner == 0:
				unused++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if keys > 0 && keys+unused == len(n.children) {
		o.Kind, o.State, o.Detail = "flight", "flight", plural(int64(keys), "key")
	}
	return nil
}

// maxKeys is how many children are read at most to tell a flight from a directory.
const maxKeys = 64
