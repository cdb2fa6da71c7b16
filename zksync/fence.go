package zksync

import (
	"fmt"
	"sync"
)

// Fence protects a resource of this process from holders that lost their lock
// and do not know it yet: it remembers the newest [Token] it has admitted and
// refuses every older one. The zero Fence is ready to use and has seen none. It is
// safe for concurrent use and must not be copied after the first use.
//
// Admitting and acting must be one step for the resource. If requests run
// concurrently, call Admit while holding the lock under which the change is made;
// otherwise a newer holder may come and go between the two.
//
// A Fence forgets when the process ends. A resource that outlives the process
// keeps the newest token with its data; see [Token] for how that looks in SQL.
type Fence struct {
	mu     sync.Mutex
	newest Token // guarded by mu; only ever grows
}

// Admit returns nil if token is the newest seen so far, or equal to it, and
// remembers it. It returns an error wrapping [ErrStale], and remembers nothing, if
// a newer one was admitted before. A token that no grant can have, such as the
// zero token of a program that forgot to pass one, is refused as well, with an
// error that wraps both ErrStale and [ErrMisuse].
func (f *Fence) Admit(token Token) error {
	if token.Zxid <= 0 {
		return fmt.Errorf("zksync: fence: token %s belongs to no grant: %w (%w)", token, ErrStale, ErrMisuse)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if token.Compare(f.newest) < 0 {
		return fmt.Errorf("zksync: fence: token %s is older than %s: %w", token, f.newest, ErrStale)
	}
	f.newest = token
	return nil
}

// Newest returns the newest token admitted so far, the zero Token if none was.
func (f *Fence) Newest() Token {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}
