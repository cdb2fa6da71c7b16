package tree

import (
	"math/bits"

	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// nameSet is a set of strings that iterates in the order in which the real
// server's hash set does. A client that forgets to sort a listing must see the
// same jumble here as in production; an insertion-ordered or sorted answer would hide the bug.
type nameSet struct {
	table []bucket // a power of two
	used  []uint64 // a bit for each bucket that is not empty: a table never shrinks
	n     int
	index map[string]*entry // once there was a long bucket, as names with one hash make it; else nil
	wire  []byte            // the listing as replies have it, until the set changes; nil for not known
}

// bucket is a list of names in insertion order.
type bucket struct{ first, last *entry }

type entry struct {
	name       string
	prev, next *entry
}

// newNameSet returns a set whose table starts with the given number of buckets,
// a power of two.
func newNameSet(buckets int) *nameSet {
	s := &nameSet{}
	s.allocate(buckets)
	return s
}

func (s *nameSet) allocate(buckets int) {
	s.table = make([]bucket, buckets)
	s.used = make([]uint64, (buckets+63)/64)
}

// nameHash is the hash of a string in a JVM hash table: the high bits are folded in.
func nameHash(s string) uint32 {
	h := jvm.Hash(s)
	return h ^ h>>16
}

func (s *nameSet) place(name string) int {
	return int(nameHash(name)) & (len(s.table) - 1)
}

func (s *nameSet) has(name string) bool {
	if s == nil {
		return false
	}
	e, _ := s.find(name)
	return e != nil
}

// find returns the entry of a name, nil if there is none, and how many others were looked at.
func (s *nameSet) find(name string) (e *entry, others int) {
	if s.index != nil {
		return s.index[name], 0
	}
	for e = s.table[s.place(name)].first; e != nil && e.name != name; e = e.next {
		others++
	}
	return e, others
}

// longBucket is the number of names in a bucket at which the JVM's hash table, too, does something about it.
const longBucket = 8

func (s *nameSet) add(name string) {
	e, others := s.find(name)
	if e != nil {
		return
	}
	e = &entry{name: name}
	s.link(e)
	s.n++
	s.wire = nil
	if s.index != nil {
		s.index[name] = e
	}
	if others >= longBucket {
		s.lengthen()
	}
	if s.n > len(s.table)*3/4 {
		s.grow()
	}
}

// lengthen is called when a bucket has become long. A small table grows then, as the JVM's does.
func (s *nameSet) lengthen() {
	if len(s.table) < 64 {
		s.grow()
		return
	}
	s.index = make(map[string]*entry, 2*s.n)
	for e := range s.all {
		s.index[e.name] = e
	}
}

func (s *nameSet) link(e *entry) {
	i := s.place(e.name)
	b := &s.table[i]
	e.prev, e.next = b.last, nil
	if b.last == nil {
		b.first = e
		s.used[i/64] |= 1 << (i % 64)
	} else {
		b.last.next = e
	}
	b.last = e
}

// grow doubles the table. Walking the old buckets in order keeps the relative
// order inside each new bucket, as the JVM's resize does.
func (s *nameSet) grow() {
	old := *s
	s.allocate(2 * len(old.table))
	for e := range old.all {
		s.link(e)
	}
}

func (s *nameSet) remove(name string) {
	if s == nil {
		return
	}
	e, _ := s.find(name)
	if e == nil {
		return
	}
	i := s.place(name)
	b := &s.table[i]
	if e.prev == nil {
		b.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		b.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	if b.first == nil {
		s.used[i/64] &^= 1 << (i % 64)
	}
	delete(s.index, name)
	s.n--
	s.wire = nil
}

// all yields the entries in table order. The one that is yielded may be linked elsewhere meanwhile.
func (s *nameSet) all(yield func(*entry) bool) {
	for w, word := range s.used {
		for ; word != 0; word &= word - 1 {
			for e := s.table[w*64+bits.TrailingZeros64(word)].first; e != nil; {
				next := e.next
				if !yield(e) {
					return
				}
				e = next
			}
		}
	}
}

func (s *nameSet) len() int {
	if s == nil {
		return 0
	}
	return s.n
}

// list returns the names in table order; nil if there are none.
func (s *nameSet) list() []string {
	if s.len() == 0 {
		return nil
	}
	out := make([]string, 0, s.n)
	for e := range s.all {
		out = append(out, e.name)
	}
	return out
}

// appendTo appends the listing to a reply. Contenders for one thing list the same names again and again: they are
// put together once.
func (s *nameSet) appendTo(e *wire.Encoder) {
	if s.len() == 0 {
		e.Int32(0)
		return
	}
	if s.wire == nil {
		l := wire.Encoder{B: make([]byte, 0, 4+32*s.n)}
		l.Int32(int32(s.n))
		for x := range s.all {
			l.Text(x.name)
		}
		s.wire = l.B
	}
	e.B = append(e.B, s.wire...)
}

// copy returns the same set, in the same order.
func (s *nameSet) copy() *nameSet {
	if s == nil {
		return nil
	}
	c := newNameSet(len(s.table))
	c.n = s.n
	for e := range s.all {
		c.link(&entry{name: e.name})
	}
	return c
}

// clone copies the set as the JVM does: into a table sized for its number of elements, which
// may order them differently.
func (s *nameSet) clone() *nameSet {
	if s.len() == 0 {
		return newNameSet(16)
	}
	buckets := 1
	for want := s.n*4/3 + 1; buckets < want; {
		buckets *= 2
	}
	c := newNameSet(buckets)
	for _, name := range s.list() {
		c.add(name)
	}
	return c
}
