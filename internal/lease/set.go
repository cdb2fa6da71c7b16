package lease

// Set is a set of leases. A lease can be in one Set at a time, so the leases themselves carry the list, and
// adding and removing costs next to nothing. It must not be used by several goroutines at once.
type Set struct{ first *Lease }

// links are the neighbours of a lease in its Set.
type links struct {
	prev, next *Lease
	in         *Set // nil if it is in none
}

// Add puts l, which is in no set, into s.
func (s *Set) Add(l *Lease) {
	l.links = links{next: s.first, in: s}
	if s.first != nil {
		s.first.prev = l
	}
	s.first = l
}

// Remove takes l out of s. It does nothing if l is not there.
func (s *Set) Remove(l *Lease) {
	switch {
	case l.in != s:
		return
	case l.prev != nil:
		l.prev.next = l.next
	default:
		s.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.links = links{}
}

// Empty reports whether no lease is in s.
func (s *Set) Empty() bool { return s.first == nil }

// All are the leases in s.
func (s *Set) All() (all []*Lease) {
	for l := s.first; l != nil; l = l.next {
		all = append(all, l)
	}
	return all
}
