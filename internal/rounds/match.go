package rounds

import (
	"container/heap"
	"math"
	"slices"
)

// match gives each item one of the workers, which are sorted: their indexes, by the items.
//
// A set of bids that the shares allow is independent in a matroid: the union of one with so many bids for each worker, and one with a bid
// more for so many workers. So the bids that are taken when all are asked by their scores may be found in any order, as in a stable matching
// in which both sides go by the same scores (Fleiner: A fixed-point approach to stable matchings, 2003): each item asks its workers in turn,
// and if that is too much, the worst bid that can make room goes on.
func match(ws []worker) map[uint64]int {
	s := sharesOf(ws)
	of := make(map[uint64]int)
	var rest []uint64
	for _, item := range union(ws) {
		next, full := best(ws, item, first), true
		for next.worker >= 0 && full {
			if next, full = s.take(next); full {
				item = next.item
				next = best(ws, item, next)
			}
		}
		if full {
			rest = append(rest, item) // only some have it in their lists, and they are full
		}
	}
	slices.Sort(rest)
	for _, item := range rest {
		b := best(ws, item, first)
		for next := b; next.worker >= 0; next = best(ws, item, next) {
			if s.room(next.worker) {
				b = next
				break
			}
		}
		heap.Push(&s.held[b.worker], b)
	}
	for k, h := range s.held {
		for _, b := range h {
			of[b.item] = k
		}
	}
	return of
}

// shares are how many items workers may have. Workers whose lists have items in common, directly or through others, are one set.
type shares struct {
	held  []bids
	set   []int // of each worker
	least []int // by set: floor(items/workers)
	most  []int // by set: ceil(items/workers)
	extra []int // by set: how many more workers may have one more than the least
}

func sharesOf(ws []worker) *shares {
	n := len(ws)
	s := &shares{make([]bids, n), sets(ws), make([]int, n), make([]int, n), make([]int, n)}
	uneven := slices.ContainsFunc(ws, func(w worker) bool { return !w.Even })
	for set := range n {
		var members []worker
		for k, w := range ws {
			if s.set[k] == set {
				members = append(members, w)
			}
		}
		switch items := len(union(members)); {
		case uneven:
			s.least[set], s.most[set] = math.MaxInt, math.MaxInt
		case len(members) > 0:
			s.least[set], s.extra[set] = items/len(members), items%len(members)
			s.most[set] = s.least[set] + min(s.extra[set], 1)
		}
	}
	return s
}

// sets numbers the sets of workers.
func sets(ws []worker) []int {
	set := make([]int, len(ws))
	var firsts []int // of the workers, the first with each list
	for k, w := range ws {
		set[k] = k
		if same := slices.IndexFunc(firsts, func(j int) bool { return slices.Equal(ws[j].List, w.List) }); same >= 0 {
			set[k] = set[firsts[same]]
			continue
		}
		for _, j := range firsts {
			if one, other := set[j], set[k]; one != other && slices.ContainsFunc(w.List, ws[j].List.has) {
				for i := range k + 1 {
					if set[i] == other {
						set[i] = one
					}
				}
			}
		}
		firsts = append(firsts, k)
	}
	return set
}

// room reports whether a worker may have one more, whatever others have.
func (s *shares) room(k int) bool { return len(s.held[k]) < s.most[s.set[k]] }

// take takes a bid. If that is one too many, it returns the one that goes.
func (s *shares) take(b bid) (out bid, full bool) {
	k, set := b.worker, s.set[b.worker]
	heap.Push(&s.held[k], b)
	switch n := len(s.held[k]); {
	case n <= s.least[set]:
		return bid{}, false
	case n > s.least[set]+1:
		return heap.Pop(&s.held[k]).(bid), true
	case s.extra[set] > 0:
		s.extra[set]--
		return bid{}, false
	}
	for j, h := range s.held {
		if s.set[j] == set && len(h) > s.least[set] && h[0].score < s.held[k][0].score {
			k = j
		}
	}
	return heap.Pop(&s.held[k]).(bid), true
}

// union is all items, each once.
func union(ws []worker) List {
	var lists []List // most workers have the same
	for _, w := range ws {
		if !slices.ContainsFunc(lists, func(l List) bool { return slices.Equal(l, w.List) }) {
			lists = append(lists, w.List)
		}
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// bid is a pair of an item and a worker.
type bid struct {
	item, score uint64
	worker      int // its index; -1 for none
}

// first comes before all pairs.
var first = bid{score: math.MaxUint64, worker: -1}

// best is the pair of an item that comes after another one of its pairs. Of equal scores, that of the smaller ID comes first.
func best(ws []worker, item uint64, after bid) bid {
	next := bid{item: item, worker: -1}
	for k, w := range ws {
		score := w.score(item)
		later := score < after.score || score == after.score && k > after.worker
		if later && w.List.has(item) && (next.worker < 0 || score > next.score) {
			next.score, next.worker = score, k
		}
	}
	return next
}

// bids are the items of a worker, the one with the smallest score first.
type bids []bid

func (b bids) Len() int           { return len(b) }
func (b bids) Less(i, j int) bool { return b[i].score < b[j].score }
func (b bids) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *bids) Push(x any)        { *b = append(*b, x.(bid)) }
func (b *bids) Pop() any {
	last := len(*b) - 1
	x := (*b)[last]
	*b = (*b)[:last]
	return x
}
