package zkserver

import (
	"slices"
	"unicode/utf16"
)

// nameSet is a set of strings that iterates in the order in which the real
// server's hash set does. A client that forgets to sort a listing must see the
// same jumble here as in production; an insertion-ordered or sorted answer would hide the bug.
type nameSet struct {
	table [][]string // power of two buckets, each in insertion order
	n     int
}

// newNameSet returns a set whose table starts with the given number of buckets,
// a power of two.
func newNameSet(buckets int) *nameSet {
	return &nameSet{table: make([][]string, buckets)}
}

// nameHash is the hash of a string in a JVM hash table: the high bits are folded in.
func nameHash(s string) uint32 {
	h := javaHash(s)
	return h ^ h>>16
}

// javaHash is the string hash of the JVM, over UTF-16 units.
func javaHash(s string) uint32 {
	var h uint32
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
		h = 31*h + uint32(s[i])
	}
	if !ascii {
		h = 0
		for _, u := range utf16.Encode([]rune(s)) {
			h = 31*h + uint32(u)
		}
	}
	return h
}

func (s *nameSet) bucket(name string) int {
	return int(nameHash(name)) & (len(s.table) - 1)
}

func (s *nameSet) has(name string) bool {
	return s != nil && slices.Contains(s.table[s.bucket(name)], name)
}

func (s *nameSet) add(name string) {
	i := s.bucket(name)
	if slices.Contains(s.table[i], name) {
		return
	}
	s.table[i] = append(s.table[i], name)
	s.n++
	if s.n > len(s.table)*3/4 {
		s.grow()
	}
}

// grow doubles the table. Walking the old buckets in order keeps the relative
// order inside each new bucket, as the JVM's resize does.
func (s *nameSet) grow() {
	old := s.table
	s.table = make([][]string, 2*len(old))
	for _, b := range old {
		for _, name := range b {
			i := s.bucket(name)
			s.table[i] = append(s.table[i], name)
		}
	}
}

func (s *nameSet) remove(name string) {
	if s == nil {
		return
	}
	b := s.bucket(name)
	if i := slices.Index(s.table[b], name); i >= 0 {
		s.table[b] = slices.Delete(s.table[b], i, i+1)
		s.n--
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
	for _, b := range s.table {
		out = append(out, b...)
	}
	return out
}

// copy returns the same set, in the same order.
func (s *nameSet) copy() *nameSet {
	if s == nil {
		return nil
	}
	c := &nameSet{table: make([][]string, len(s.table)), n: s.n}
	for i, bucket := range s.table {
		c.table[i] = slices.Clone(bucket)
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
