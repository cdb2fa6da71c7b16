package access

import (
	"slices"

	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// With adds a proved identity. The order shows when the client asks who it is, and when the "auth" scheme is
// replaced by several identities: it is that of the hash table in which the real server keeps them.
func With(ids []wire.ID, id wire.ID) []wire.ID {
	if slices.Contains(ids, id) {
		return ids
	}
	size := tableSize(len(ids))
	i := 0
	for i < len(ids) && bucketOf(ids[i], size) <= bucketOf(id, size) {
		i++
	}
	ids = slices.Insert(slices.Clone(ids), i, id)
	if tableSize(len(ids)) > size {
		return rehash(ids, size)
	}
	return ids
}

// tableSize returns how many buckets the JVM's concurrent hash table has after n additions.
func tableSize(n int) int {
	size := 16
	for n >= size*3/4 {
		size *= 2
	}
	return size
}

// rehash doubles the table: each bucket of the old one is divided between two of the new one.
func rehash(ids []wire.ID, size int) []wire.ID {
	var low, high []wire.ID
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && bucketOf(ids[n], size) == bucketOf(ids[0], size) {
			n++
		}
		l, h := divide(ids[:n], size)
		low, high = append(low, l...), append(high, h...)
		ids = ids[n:]
	}
	return append(low, high...)
}

// divide tells the elements of a bucket apart by one more bit of their hash. The JVM moves the end of the
// bucket as it is, as far as it stays together, and puts each of the others in front of what it has.
func divide(bin []wire.ID, size int) (low, high []wire.ID) {
	up := func(id wire.ID) bool { return bucketOf(id, 2*size) >= size }
	run := len(bin) - 1
	for run > 0 && up(bin[run-1]) == up(bin[run]) {
		run--
	}
	for i, id := range bin {
		to := &low
		if up(id) {
			to = &high
		}
		if i < run {
			*to = slices.Insert(*to, 0, id)
			continue
		}
		*to = append(*to, id)
	}
	return low, high
}

// bucketOf is the place of an identity in a JVM hash table with size buckets.
func bucketOf(id wire.ID, size int) int {
	h := 37*(37*17+jvm.Hash(id.Scheme)) + jvm.Hash(id.Name)
	return int(h^h>>16) & (size - 1)
}
