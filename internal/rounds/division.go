package rounds

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"slices"
)

// HashName says which hash divides the items. All workers must use the same one, so it is in the data of the group.
const HashName = "rendezvous-fnv1a64-mix"

// hash is the 64-bit FNV-1a hash of the text, mixed so that similar texts have hashes that have nothing in common.
func hash(text string) uint64 {
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
		l[i] = hash(item)
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

// Division says which worker each item belongs to: to the one with the greatest score of the two, among those that have
// it in their list (Thaler, Ravishankar: Using name-based mappings to increase hit rates, 1998). So when
// a worker leaves, only its items move, and when one comes, items move to it only.
type Division struct {
	items   []uint64
	workers map[string]part
	owners  []owner // of each item
}

// part is what a worker has to do with the division.
type part struct {
	hash uint64
	list List
}

// owner is the worker of an item, if there is one.
type owner struct {
	id    string
	score uint64
	is    bool
}

func NewDivision(items []string) *Division {
	d := &Division{items: make([]uint64, len(items)), workers: map[string]part{}, owners: make([]owner, len(items))}
	for i, item := range items {
		d.items[i] = hash(item)
	}
	return d
}

// Add has a worker take part, with the list that it has now.
func (d *Division) Add(id string, l List) {
	d.Remove(id)
	p := part{hash(id), l}
	d.workers[id] = p
	for i := range d.items {
		d.offer(i, id, p)
	}
}

// offer gives an item to a worker if nobody has a greater score.
func (d *Division) offer(i int, id string, p part) {
	if !p.list.has(d.items[i]) {
		return
	}
	score, o := mix(d.items[i]^p.hash), d.owners[i]
	if !o.is || score > o.score || score == o.score && id < o.id {
		d.owners[i] = owner{id, score, true}
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
		for other, p := range d.workers {
			d.offer(i, other, p)
		}
	}
}

// Has reports whether a worker takes part.
func (d *Division) Has(id string) bool {
	_, has := d.workers[id]
	return has
}

// Owns reports whether the item at this index belongs to a worker.
func (d *Division) Owns(id string, item int) bool {
	return d.owners[item].is && d.owners[item].id == id
}
