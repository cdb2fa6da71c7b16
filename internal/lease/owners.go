package lease

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/go-menagerie/menagerie/internal/session"
)

// owners has the live leases of a session by the goroutines that acquired them: of locks with deadlock detection only.
type owners struct {
	mu  sync.Mutex
	all map[int64][]*Lease
}

type ownersKey struct{}

func ownersOf(s *session.Session) *owners {
	return s.Shared(ownersKey{}, func() any { return &owners{all: map[int64][]*Lease{}} }).(*owners)
}

func (o *owners) add(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[l.goroutine] = append(o.all[l.goroutine], l)
}

func (o *owners) remove(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left := slices.DeleteFunc(o.all[l.goroutine], func(other *Lease) bool { return other == l })
	if o.all[l.goroutine] = left; len(left) == 0 {
		delete(o.all, l.goroutine)
	}
}

// of are the leases that the calling goroutine keeps while it waits at path: its own, and those of the goroutine that started it, which
// usually waits for it. What that one holds at the same path is left out: a goroutine that is started under a lock may wait for it.
func (o *owners) of(goroutine int64, path string) []*Lease {
	o.mu.Lock()
	own, any := slices.Clone(o.all[goroutine]), len(o.all) > 0
	o.mu.Unlock()
	if !any {
		return nil
	}
	parent, known := startedBy() // expensive, and not under mu
	if !known {
		return own
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.all[parent] {
		if l.access.Path != path {
			own = append(own, l)
		}
	}
	return own
}

// current is the calling goroutine. A library that asks for it faster would be one more that all users of a lock get; and only a lock
// with deadlock detection asks.
func current() int64 {
	var text [64]byte
	head := text[:runtime.Stack(text[:], false)]
	number, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("goroutine ")), []byte(" "))
	n, _ := strconv.ParseInt(string(number), 10, 64)
	return n
}

// startedBy is the goroutine that started the calling one. It reports false if the runtime does not say.
func startedBy() (goroutine int64, known bool) {
	for size := 8 << 10; size <= 1<<20; size *= 4 {
		text := make([]byte, size)
		if n := runtime.Stack(text, false); n < size {
			return creator(text[:n])
		}
	}
	return 0, false
}

// creator finds, in the text of a stack, the goroutine that started it.
func creator(stack []byte) (goroutine int64, known bool) {
	_, last, found := bytes.Cut(stack[max(bytes.LastIndex(stack, []byte("\ncreated by ")), 0):], []byte("\ncreated by "))
	line, _, _ := bytes.Cut(last, []byte("\n"))
	i := bytes.LastIndex(line, []byte(" in goroutine "))
	if !found || i < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(line[i+len(" in goroutine "):]), 10, 64)
	return n, err == nil
}

// Held are the leases of s that the calling goroutine keeps for as long as it waits at path: those of ctx and of the contexts in which they were
// acquired, and those that it has acquired itself, or the goroutine that started it. Their nodes are not handed over from now on.
func Held(ctx context.Context, s *session.Session, path string) (all []*Lease) {
	for l := From(ctx); l != nil; l = From(l.asked) {
		if l.access.Session == s { // the tokens and paths of another session may be those of another cluster
			all = append(all, l.hold())
		}
	}
	all = append(all, ownersOf(s).of(current(), path)...)
	kept := all[:0]
	for _, l := range all {
		// In this order: a lease that ends after the look has its grantor find the node named.
		l.ticket.Named.Store(true)
		if l.Err() == nil && !slices.Contains(kept, l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// Live are all leases of s that Held may return for one goroutine or another.
func Live(s *session.Session) (all []*Lease) {
	o := ownersOf(s)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, leases := range o.all {
		all = append(all, leases...)
	}
	return all
}

// hold is the lease of the grant: l itself, or that of which it is a sublease.
func (l *Lease) hold() *Lease {
	for l.sublease != nil {
		l = l.sublease.outer
	}
	return l
}

// owned adds l to the owners, or removes it, if deadlocks are looked for.
func (l *Lease) owned(o func(*owners, *Lease)) {
	if l.goroutine != 0 {
		o(ownersOf(l.access.Session), l)
	}
}
