package rounds

import (
	"container/heap"
	"math"
	"slices"
)

// match gives each item one of the workers, which are sorted: their indexes, by the items. Taking the pairs by their scores is a
// stable matching in which both sides go by the same scores. There is only one, so it may be found in any order (Gale, Shapley: College
// admissions and the stability of marriage, 1962): each item asks its workers in turn, and a full worker sends its
// worst item on.
func match(ws []worker) map[uint64]int {
	items := union(ws)
	most := bound(ws, len(items))
	held, of := make([]bids, len(ws)), make(map[uint64]int, len(items))
	for _, item := range items {
		next := best(ws, item, bid{score: math.MaxUint64, worker: -1})
		for next.worker >= 0 {
			h := &held[next.worker]
			heap.Push(h, next)
			if len(*h) <= most {
				break
			}
			next = heap.Pop(h).(bid)
			item = next.item
			next = best(ws, item, next)
		}
		if next.worker < 0 { // only some have it in their lists, and they are full
			of[item] = best(ws, item, bid{score: math.MaxUint64, worker: -1}).worker
		}
	}
	for k, h := range held {
		for _, b := range h {
			of[b.item] = k
		}
	}
	return of
}

// bound is how many items a worker may have.
func bound(ws []worker, items int) int {
	n := 0
	for _, w := range ws {
		if !w.Even {
			return math.MaxInt
		}
		if len(w.List) > 0 {
			n++
		}
	}
	return (items + n - 1) / max(n, 1)
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
