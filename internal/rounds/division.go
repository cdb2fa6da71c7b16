package rounds

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
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
	Failed map[uint64]int // the newest attempt of each item that has failed there
}

// Division says which worker each item belongs to, among those that have it in their list: to a worker where it has not failed, or else
// to the one where it failed first; of several, to the one with the greatest score of the two (Thaler, Ravishankar: Using name-based
// mappings to increase hit rates, 1998). So when a worker leaves, only its items move, and when one comes, items move to it only.
type Division struct {
	items    []uint64
	index    map[uint64]int
	attempts []int // how often each item has failed
	workers  map[string]worker
	owners   []owner // of each item
}

// worker is a worker that takes part.
type worker struct {
	hash uint64
	Part
}

// owner is the worker of an item, if there is one.
type owner struct {
	id     string
	failed int
	score  uint64
	is     bool
}

// NewDivision divides these items. At first it has no workers.
func NewDivision(items []string) *Division {
	d := &Division{
		items: make([]uint64, len(items)), index: make(map[uint64]int, len(items)),
		attempts: make([]int, len(items)), workers: map[string]worker{}, owners: make([]owner, len(items)),
	}
	for i, item := range items {
		d.items[i] = Hash(item)
		d.index[d.items[i]] = i
	}
	return d
}

// Add adds a worker, or replaces its part.
func (d *Division) Add(id string, p Part) {
	d.Remove(id)
	w := worker{Hash(id), p}
	d.workers[id] = w
	for i := range d.items {
		d.offer(i, id, w)
	}
	for item, attempt := range p.Failed {
		if i, listed := d.index[item]; listed {
			d.attempts[i] = max(d.attempts[i], attempt)
		}
	}
}

// offer gives an item to a worker, unless its owner comes before that worker.
func (d *Division) offer(i int, id string, w worker) {
	if !w.List.has(d.items[i]) {
		return
	}
	next, o := owner{id, w.Failed[d.items[i]], mix(d.items[i] ^ w.hash), true}, d.owners[i]
	if !o.is || cmp.Or(cmp.Compare(o.failed, next.failed), cmp.Compare(next.score, o.score), cmp.Compare(o.id, id)) > 0 {
		d.owners[i] = next
	}
}

// Remove removes a worker.
func (d *Division) Remove(id string) {
	delete(d.workers, id)
	for i, o := range d.owners {
		if !o.is || o.id != id {
			continue
		}
		d.owners[i] = owner{}
		for other, w := range d.workers {
			d.offer(i, other, w)
		}
	}
}

// Attempts is how often the item at this index has failed, as far as is known.
func (d *Division) Attempts(item int) int { return d.attempts[item] }

// Has reports whether a worker takes part.
func (d *Division) Has(id string) bool {
	_, has := d.workers[id]
	return has
}

// Owns reports whether the item at this index belongs to a worker.
func (d *Division) Owns(id string, item int) bool {
	return d.owners[item].is && d.owners[item].id == id
}
