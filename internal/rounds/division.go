package rounds

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"maps"
	"slices"
	"time"
)

// HashName names the hash that divides the items. All workers must use the same one, so it is in the data of the group.
const HashName = "rendezvous-fnv1a64-mix"

// Hash is the name of an item or a worker: the 64-bit FNV-1a hash of the text, mixed so that similar texts have unrelated hashes.
func Hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return mix(h.Sum64())
}

// mix is the last step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// List is a worker's list of items as other workers know it: the sorted hashes of the items.
type List []uint64

// ListOf makes the list of these items.
func ListOf(items []string) List {
	l := make(List, len(items))
	for i, item := range items {
		l[i] = Hash(item)
	}
	slices.Sort(l)
	return l
}

// encode is the data of the list's node.
func (l List) encode() []byte {
	data := make([]byte, 0, 8*len(l))
	for _, h := range l {
		data = binary.BigEndian.AppendUint64(data, h)
	}
	return data
}

// decodeList is the reverse of encode. It ignores an incomplete hash at the end.
func decodeList(data []byte) List {
	l := make(List, 0, len(data)/8)
	for ; len(data) >= 8; data = data[8:] {
		l = append(l, binary.BigEndian.Uint64(data))
	}
	return l
}

func (l List) has(item uint64) bool {
	_, found := slices.BinarySearch(l, item)
	return found
}

// digest names the list.
func (l List) digest() string {
	sum := sha256.Sum256(l.encode())
	return hex.EncodeToString(sum[:16])
}

// Part is a worker's part in the division, which the data of its node name: see Worker.
type Part struct {
	List   List
	Even   bool           // it divides evenly; workers of earlier versions do not
	Failed map[uint64]int // the newest attempt of each item that has failed there
}

// Division says which worker each item belongs to, among those that have it in their list. A worker and an item have a score (Thaler,
// Ravishankar: Using name-based mappings to increase hit rates, 1998). The pairs are taken by their scores, the greatest first: an
// item belongs to the first worker that has room then: it has fewer than floor(items/workers), or has that many, and fewer than
// items%workers others have one more. So the division depends on the workers and the items only. If all have room for it, that is
// rendezvous hashing: when a worker comes or goes, no item moves between two others. The bounds move some more. With ceil(items/workers) as
// the only bound a worker that goes would move many: if each has one item, two would have room for all.
//
// Workers whose lists have no item in common, directly or through others, have bounds of their own.
//
// An item that has failed belongs to a worker where it has not failed, or else to the one where it failed first. That moves no other
// item: the item keeps its place in the count of the worker that it left.
//
// If a worker does not divide evenly, none has a bound: so workers of all versions agree.
type Division struct {
	items    []uint64
	index    map[uint64]int
	attempts []int // how often each item has failed
	workers  map[string]worker
	counted  map[string]worker // workers, as of the newest Settle; those that are still there have their newest parts
	of       map[uint64]int    // the worker of each item before failures: its index by ID; nil if that is to be found out
	owners   []string          // of each item, "" for none; nil if that is to be found out
}

// worker is a worker that takes part.
type worker struct {
	id    string
	hash  uint64
	since time.Time
	Part
}

func (w worker) score(item uint64) uint64 { return mix(item ^ w.hash) }

// NewDivision divides these items. At first it has no workers.
func NewDivision(items []string) *Division {
	d := &Division{
		items: make([]uint64, len(items)), index: make(map[uint64]int, len(items)),
		attempts: make([]int, len(items)), workers: map[string]worker{}, counted: map[string]worker{},
	}
	for i, item := range items {
		d.items[i] = Hash(item)
		d.index[d.items[i]] = i
	}
	return d
}

// Add adds a worker, or replaces its part. A new worker counts after Settle.
func (d *Division) Add(id string, p Part) {
	w, there := d.workers[id]
	if !there {
		w = worker{id: id, hash: Hash(id), since: time.Now()}
	}
	w.Part = p
	d.workers[id] = w
	if c, counts := d.counted[id]; counts {
		if c.Even != p.Even || !slices.Equal(c.List, p.List) { // a failure changes neither
			d.of = nil
		}
		d.counted[id], d.owners = w, nil
	}
	for item, attempt := range p.Failed {
		if i, listed := d.index[item]; listed {
			d.attempts[i] = max(d.attempts[i], attempt)
		}
	}
}

// Remove removes a worker. It counts until Settle.
func (d *Division) Remove(id string) { delete(d.workers, id) }

// Settle divides the items among the present workers.
func (d *Division) Settle() { d.SettleOn(0) }

// SettleOn divides the items among the workers that have been there for so long; if there is none, among all.
func (d *Division) SettleOn(age time.Duration) {
	if d.Settled() {
		return
	}
	d.counted, d.of, d.owners = maps.Clone(d.workers), nil, nil
	maps.DeleteFunc(d.counted, func(_ string, w worker) bool { return time.Since(w.since) < age })
	if len(d.counted) == 0 {
		d.counted = maps.Clone(d.workers)
	}
}

// Settled reports whether the items are divided among the present workers.
func (d *Division) Settled() bool {
	return maps.EqualFunc(d.workers, d.counted, func(worker, worker) bool { return true })
}

// Alone reports whether a worker is the only one, and none has counted.
func (d *Division) Alone(id string) bool {
	_, is := d.workers[id]
	return is && len(d.workers) == 1 && len(d.counted) == 0
}

// Attempts is how often the item at this index has failed, as far as is known.
func (d *Division) Attempts(item int) int { return d.attempts[item] }

// Has reports whether a worker counts.
func (d *Division) Has(id string) bool {
	_, has := d.counted[id]
	return has
}

// Owns reports whether the item at this index belongs to a worker.
func (d *Division) Owns(id string, item int) bool {
	if d.owners == nil {
		d.divide()
	}
	return d.owners[item] == id
}

// divide finds out who owns the items.
func (d *Division) divide() {
	ws := slices.SortedFunc(maps.Values(d.counted), func(a, b worker) int { return cmp.Compare(a.id, b.id) })
	if d.of == nil {
		d.of = match(ws)
	}
	d.owners = make([]string, len(d.items))
	for i, item := range d.items {
		if k, owned := d.of[item]; owned {
			d.owners[i] = oldestFailure(ws, item, k).id
		}
	}
}

// oldestFailure is the worker of an item, which is that at index k unless it has failed there.
func oldestFailure(ws []worker, item uint64, k int) worker {
	best := ws[k]
	if best.Failed[item] == 0 {
		return best
	}
	for _, w := range ws {
		if w.List.has(item) && cmp.Or(cmp.Compare(w.Failed[item], best.Failed[item]), cmp.Compare(best.score(item), w.score(item))) < 0 {
			best = w
		}
	}
	return best
}
