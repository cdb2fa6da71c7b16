package zksync

// policy decides what an entry waits for. Given the entries ahead of self, in
// queue order, it returns the blockers: the fewest that cannot all still be there
// when self is granted. None means that self is granted.
//
// A caller waits until any blocker leaves, takes it out of ahead and asks again.
// Because nothing ever enters ahead of an existing entry, ahead only shrinks, and so
// does what a policy returns: it never asks for more than before.
type policy func(ahead []entry, self entry) (blockers []entry)

// policyFor returns the rule by which an entry of this kind is granted. The
// capacity is used for permits only. An unknown kind queues like a lock, which is
// the strictest rule.
func policyFor(kind Kind, capacity int64) policy {
	switch kind {
	case KindRead:
		return readerPolicy
	case KindWrite:
		return writerPolicy
	case KindPermit:
		return weightedPolicy(capacity)
	}
	return mutexPolicy
}

// mutexPolicy waits for the last one ahead: in strict order it leaves last.
func mutexPolicy(ahead []entry, _ entry) []entry { return lastOf(ahead) }

// writerPolicy waits for the last one ahead, reader or writer. It need not be the
// last to leave, since readers hold together: then the caller finds another one.
func writerPolicy(ahead []entry, _ entry) []entry { return lastOf(ahead) }

// readerPolicy waits for the last exclusive entry ahead; other readers do not
// matter, even those that wait.
func readerPolicy(ahead []entry, _ entry) []entry {
	for i := len(ahead) - 1; i >= 0; i-- {
		if ahead[i].exclusive() {
			return ahead[i : i+1 : i+1]
		}
	}
	return nil
}

// weightedPolicy grants an entry as soon as it and everyone ahead of it fit into
// the capacity together. Whoever is ahead counts, whether granted or waiting, so a
// big request that waits is not starved by small ones behind it.
//
// The blockers are the shortest tail of ahead that does not fit together with
// self: as long as all of it is there, self cannot be granted. Any tail that does
// not fit would do, the shortest makes for the fewest watches. One that leaves out
// of the middle shortens the queue by a known weight, and the next question is
// answered from the remaining entries.
//
// An entry that is greater than the whole capacity is its own blocker: it will not
// be granted while it is there, whoever leaves. Without that rule the empty tail
// would not fit, and "no blockers" means granted. (The capacity may have been
// lowered while it waited.)
//
// Entries that are not permits take none and are ignored.
func weightedPolicy(capacity int64) policy {
	return func(ahead []entry, self entry) []entry {
		if self.weight > capacity {
			return []entry{self}
		}
		free := capacity - self.weight
		var tail []entry
		for i := len(ahead) - 1; i >= 0; i-- {
			if ahead[i].kind != KindPermit {
				continue
			}
			tail = append(tail, ahead[i])
			// Subtracting keeps within 0 and capacity, where a sum of weights that
			// other processes chose could overflow.
			if ahead[i].weight > free {
				return tail
			}
			free -= ahead[i].weight
		}
		return nil
	}
}

func lastOf(ahead []entry) []entry {
	if len(ahead) == 0 {
		return nil
	}
	return ahead[len(ahead)-1:]
}
