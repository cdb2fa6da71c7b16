package queue

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/layout"
)

// Policy decides what an entry waits for. It gets the entries ahead of self in queue
// order, and returns the blockers: entries of which at least one must leave before self
// can be granted. No blockers means that self is granted. The fewer there are, the less
// often the waiter is woken.
//
// The caller waits until any blocker leaves, takes that one out of ahead, and asks
// again. Nothing ever enters ahead of an existing entry, so ahead only shrinks. A policy
// must keep to this: an entry that is granted stays granted when ahead shrinks further.
type Policy func(ahead []Entry, self Entry) (blockers []Entry)

// rules are what a queue knows of a kind. A new kind needs rules here, and a mark in entry.go, by which names show it.
type rules struct {
	of     string // the type, by its name in package layout, whose entries these are, unless the queue has another
	alone  bool   // such an entry asks to be alone
	counts bool   // the policy looks at more than the nearest entries
	policy Policy // nil if it depends on the capacity: see PolicyFor
}

func (k Kind) rules() rules {
	switch k {
	case KindLock:
		return rules{of: layout.Mutex, alone: true, policy: ExclusivePolicy}
	case KindRead:
		return rules{of: layout.RWMutex, policy: ReaderPolicy}
	case KindWrite:
		return rules{of: layout.RWMutex, alone: true, policy: ExclusivePolicy}
	case KindPermit:
		return rules{of: layout.Semaphore, counts: true}
	case "": // of a queue that is only listed
		return rules{}
	}
	// A kind is chosen by this module, never by a peer.
	panic("zksync: no kind of entries is called " + strconv.Quote(string(k)))
}

// TypeOf is the name in package layout of the type whose entries are of a kind. Elections and others that are made of a
// mutex have its name, unless they set another.
func TypeOf(k Kind) string { return k.rules().of }

// exclusive reports whether e asks to be alone.
func (e Entry) exclusive() bool { return e.Kind.rules().alone }

// PolicyFor returns the rule by which an entry of this kind is granted. Only the rule of permits uses the capacity.
func PolicyFor(kind Kind, capacity int64) Policy {
	if kind == KindPermit {
		return WeightedPolicy(capacity)
	}
	return kind.rules().policy
}

// ExclusivePolicy waits for the last entry ahead if that asks to be alone: all others must leave, too, and among
// entries that hold alone the last one leaves last. If the last ones ahead are readers, it waits for all of them, up
// to together: they hold together and leave in any order. One request watches all of them. A waiter that watched only
// the last one would list again whenever that one leaves before the others.
func ExclusivePolicy(ahead []Entry, _ Entry) []Entry {
	first := len(ahead)
	for first > 0 && len(ahead)-first < together && ahead[first-1].Kind == KindRead {
		first--
	}
	if first == len(ahead) && first > 0 {
		first--
	}
	return ahead[first:]
}

// together is how many readers are watched at once.
const together = 32

// ReaderPolicy waits for the last entry ahead that asks to be
// alone. Other readers do not matter, even if they still wait.
func ReaderPolicy(ahead []Entry, _ Entry) []Entry {
	for i := len(ahead) - 1; i >= 0; i-- {
		if ahead[i].exclusive() {
			return ahead[i : i+1 : i+1]
		}
	}
	return nil
}

// WeightedPolicy is the policy of permits: an entry is granted when it and all entries ahead of it fit into the
// capacity. Entries of other kinds take no permits.
//
// The blockers are entries ahead that do not fit together with self: while all of them exist, self cannot be
// granted. They are taken from the shortest tail of the queue that does not fit, because the nearest entries leave
// last; a waiter that watched the head would be woken by every release. Of that tail only the fewest entries that
// do not fit are kept.
//
// An entry that is greater than the whole capacity is its own blocker. Otherwise it would have none with no entry
// ahead, and be granted.
func WeightedPolicy(capacity int64) Policy {
	return func(ahead []Entry, self Entry) []Entry {
		if self.Weight > capacity {
			return []Entry{self}
		}
		// What is left of the capacity stays between 0 and the capacity.
		// A sum of weights, which other processes choose, could overflow.
		free := capacity - self.Weight
		var tail []Entry
		for i := len(ahead) - 1; i >= 0; i-- {
			if ahead[i].Kind != KindPermit {
				continue
			}
			tail = append(tail, ahead[i])
			if over := ahead[i].Weight - free; over > 0 {
				return fewest(tail, over-1)
			}
			free -= ahead[i].Weight
		}
		return nil
	}
}

// fewest sorts tail by weight, the heaviest first, and leaves out as many entries as it
// can without leaving out more than spare in weight. It leaves out the lightest ones. Of
// equally heavy ones it leaves out those that stand last in tail: they are nearest to
// the head of the queue and leave first, so waiting for them would mean more wake-ups.
func fewest(tail []Entry, spare int64) []Entry {
	slices.SortStableFunc(tail, func(a, b Entry) int { return cmp.Compare(b.Weight, a.Weight) })
	for n := len(tail); ; n-- {
		// This never leaves out all of them: together they weigh more than spare.
		if tail[n-1].Weight > spare {
			return tail[:n:n]
		}
		spare -= tail[n-1].Weight
	}
}
