package rounds

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
)

// HashName says which hash divides the items. All workers must use the same one, so it is in the data of the group.
const HashName = "rendezvous-fnv1a64-mix"

// Hash is the name of an item or a worker: the 64-bit FNV-1a hash of the text, mixed so that similar texts have hashes that have nothing in common.
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

// List is a list of items as other workers know it: the hashes of the items, in order.
type List []uint64

// ListOf is the list of these items.
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

// decodeList is the list that a node has. What is not a multiple of eight bytes is cut off.
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

// Part is what a worker has to do with the division. It is the data of the worker's node: see Worker.
type Part struct {
	List   List
	Failed map[uint64]int // the newest attempt of each item with which it has failed
}

// Division says which worker each item belongs to, among those that have it in their list: to the one that has not failed with it, or
// whose failure is the oldest; of several, to the one with the greatest score of the two (Thaler, Ravishankar: Using name-based mappings
// to increase hit rates, 1998). So when a worker leaves, only its items move, and when one comes, items move to it only.
type Division struct {
	items    []uint64
	index    map[uint64]int
	attempts []int // of each item, with which any worker has failed
	workers  map[string]worker
	owners   []owner // of each item
}

// worker is one that takes part.
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

// Add has a worker take part, with what it has told now.
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

// offer gives an item to a worker if nobody has a better claim.
func (d *Division) offer(i int, id string, w worker) {
	if !w.List.has(d.items[i]) {
		return
	}
	next, o := owner{id, w.Failed[d.items[i]], mix(d.items[i] ^ w.hash), true}, d.owners[i]
	if !o.is || cmp.Or(cmp.Compare(o.failed, next.failed), cmp.Compare(next.score, o.score), cmp.Compare(o.id, id)) > 0 {
		d.owners[i] = next
	}
}

// Remove has a worker take part no more.
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

// Attempts is how often workers have failed with the item at this index, as far as is known.
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
