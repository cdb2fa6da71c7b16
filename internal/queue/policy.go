package queue

import (
	"cmp"
	"slices"
)

// Policy decides what an entry waits for. Given the entries ahead of self, in
// queue order, it returns the blockers: the fewest entries of which at least one must have left
// before self is granted. No blockers means that self is granted.
//
// A caller waits until any blocker leaves, takes it out of ahead and asks again.
// Nothing ever enters ahead of an existing entry, so ahead only shrinks, and an entry
// that was granted once stays granted.
type Policy func(ahead []Entry, self Entry) (blockers []Entry)

// blockers are those of ahead that are in the way of an entry of the queue.
func (q *Queue) blockers(ahead []Entry, self Entry) []Entry {
	if q.Policy != nil {
		return q.Policy(ahead, self)
	}
	return PolicyFor(self.Kind, 1)(ahead, self)
}

func (t *Ticket) blockers(ahead []Entry) []Entry { return t.queue.blockers(ahead, t.Entry) }

// PolicyFor returns the rule by which an entry of this kind is granted. The
// capacity is used for permits only. An unknown kind queues like a lock, which is
// the strictest rule.
func PolicyFor(kind Kind, capacity int64) Policy {
	switch kind {
	case KindRead:
		return ReaderPolicy
	case KindPermit:
		return WeightedPolicy(capacity)
	}
	return ExclusivePolicy
}

// ExclusivePolicy waits for the last entry ahead. Among entries that hold alone, the last one leaves last. Readers
// hold together, so the last of them may leave earlier: then the caller finds another one.
func ExclusivePolicy(ahead []Entry, _ Entry) []Entry {
	if len(ahead) == 0 {
		return nil
	}
	return ahead[len(ahead)-1:]
}

// ReaderPolicy waits for the last exclusive entry ahead; other readers do not
// matter, even those that wait.
func ReaderPolicy(ahead []Entry, _ Entry) []Entry {
	for i := len(ahead) - 1; i >= 0; i-- {
		if ahead[i].exclusive() {
			return ahead[i : i+1 : i+1]
		}
	}
	return nil
}

// WeightedPolicy grants an entry as soon as it and all entries ahead of it fit into
// the capacity together. All entries ahead count, granted or waiting, so a
// big request that waits is not starved by small ones behind it.
//
// Any set of entries ahead that does not fit together with self could be the
// blockers: while all of it exists, self cannot be granted. The set is taken from
// the shortest tail that does not fit, because the nearest entries leave last; a waiter
// far behind that watched the head would be woken by every release. Of that tail
// only the fewest entries are kept that do not fit by themselves.
//
// An entry that is greater than the whole capacity is its own blocker: it will not
// be granted, whichever entries leave. Without that rule it would have no blockers when
// none is ahead, and "no blockers" means granted. (The capacity may have been
// lowered while it waited.)
//
// Entries that are not permits take none and are ignored.
func WeightedPolicy(capacity int64) Policy {
	return func(ahead []Entry, self Entry) []Entry {
		if self.Weight > capacity {
			return []Entry{self}
		}
		// Subtracting stays between 0 and the capacity, where a sum of weights that
		// other processes chose could overflow.
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

// fewest reorders tail and leaves out as many entries as it can without leaving out
// more than spare in weight: the lightest ones and, of equals, those that stand last in tail, which
// are nearest to the head of the queue and leave first.
func fewest(tail []Entry, spare int64) []Entry {
	slices.SortStableFunc(tail, func(a, b Entry) int { return cmp.Compare(b.Weight, a.Weight) })
	for n := len(tail); ; n-- {
		// Never all of them: together they weigh more than spare.
		if tail[n-1].Weight > spare {
			return tail[:n:n]
		}
		spare -= tail[n-1].Weight
	}
}
