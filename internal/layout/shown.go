package layout

import (
	"regexp"
	"slices"
)

// FlightKey is the type of a key of a Flight, which has a path of its own below that of the Flight.
const FlightKey = "zkflight.Key"

// ours are the words for our types, and the children of a path that are part of it.
var ours = map[string]struct {
	word string
	part func(child string) bool
}{
	Mutex:         {"lock", isOfLock},
	RWMutex:       {"rwlock", isOfLock},
	Election:      {"election", isOfLock},
	Semaphore:     {"semaphore", like(`queue`)},
	Cond:          {"condition", like(`_c_[0-9a-f-]{32,36}-wait-[0-9a-f]{16}-[0-9a-f]{8}`)},
	Once:          {"once", like(`lock|result`)},
	Barrier:       {"barrier", like(`parties-\d+|open-\d+|ended-\d+|turns?`)},
	DoubleBarrier: {"double barrier", like(`parties|gathering-\d+|open-[0-9a-f]+|turns?`)},
	Latch:         {"latch", like(`counts|closed-of-\d+`)},
	Gate:          {"gate", like(`closed`)},
	Phaser:        {"phaser", like(`open|action|wait-\d+|phase-\d+|turns?`)},
	WaitGroup:     {"wait group", like(`round|dead`)},
	Flight:        {"flight", like(``)},
	FlightKey:     {"flight key", like(`flight`)},
	Int64:         {"counter", is(Int64)},
	Value:         {"value", is(Value)},
	Sequence:      {"sequence", is(Sequence)},
	Slots:         {"slots", is(Slots)},
	Map:           {"map", is(Map)},
	Set:           {"set", is(Set)},
	Queue:         {"queue", is(Queue)},
	Group:         {"group", is(Group)},
	Cron:          {"schedule", is(Cron)},
	Durable:       {"durable lock", is(Durable)},
	Promise:       {"promise", is(Promise)},
	Rate:          {"rate", is(Rate)},
	Shards:        {"shards", is(Shards)},
}

// Word is how people are told of a type of ours: "double barrier".
func Word(kind string) string { return ours[kind].word }

// IsPart reports whether a child of a path of this type belongs to it. Any other child is a thing of its own.
func IsPart(kind, child string) bool { return ours[kind].part != nil && ours[kind].part(child) }

// Guess is the type of ours to which a path seems to belong, also if other uses leave the same nodes: a Once that is not done
// looks like the directory of a lock of that name. It is "" if the nodes are not ours, or do not tell.
func Guess(data []byte, c []string) string {
	found := TypeOf(data, c)
	switch {
	case found == Semaphore && !keys("permits")(data, nil):
		return Mutex // the queue below it
	case Word(found) != "":
		return found
	case slices.ContainsFunc(c, isOfLock):
		return Mutex
	case children("lock")(nil, c):
		return Once
	case MayBeKey(data, c):
		return FlightKey
	}
	return ""
}

// MayBeKey reports whether a path may be that of a key of a Flight: without a result any directory may have such a child.
func MayBeKey(data []byte, c []string) bool {
	return children("flight")(nil, c) && (len(data) == 0 || keys("by", "token")(data, nil))
}

// IsEntered reports whether the data of a directory are what the last entry of a lock wrote there: its name without the number.
func IsEntered(data []byte) bool { return lastEntry.Match(data) }

var lastEntry = regexp.MustCompile(`^_c_[0-9a-f-]{36}-[a-zA-Z0-9_-]+$`)

// isEntry accepts the name of a contender: see queue.ParseEntry.
var isEntry = like(`(?:_c_(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})` +
	`(?:-lock-|-__READ__|-__WRIT__|-permit-[1-9][0-9]*-)|[0-9a-fA-F]{32}(?:__lock__|__rlock__|-lock-))(?:[0-9]{10}|-[0-9]{9,10})`)

// isAside accepts what a holder with a lock delay leaves beside its entry, and a request to give the lock up.
var isAside = like(`(?:held|revoke)-.*_lock-2147483647`)

func isOfLock(child string) bool { return isEntry(child) || isAside(child) }

func like(pattern string) func(string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString
}

func is(name string) func(string) bool { return func(child string) bool { return child == name } }
