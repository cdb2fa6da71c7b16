package zksync

import (
	"fmt"
	"github.com/go-menagerie/menagerie/internal/errs"
	"sync"
)

// Fence protects a resource of this process from holders that have lost their lock and do not know it yet: it
// remembers the newest [Token] that it has admitted and refuses every older one. The zero Fence is ready to use.
// It must not be copied after the first use.
//
// Admit and the change must be one step: call Admit while holding the lock under which the change is made.
// Otherwise a newer holder may change the resource between the two. A Fence forgets when the process ends; if the
// resource outlives the process, keep the newest token with its data.
type Fence struct {
	mu     sync.Mutex
	newest Token // guarded by mu; only ever grows
}

// Admit remembers token and returns nil if it is the newest so far, or equal to the newest. If a newer one was
// admitted before, the error wraps [ErrStale]. A token that no grant can have, such as the zero token, is ErrStale
// and [ErrMisuse].
func (f *Fence) Admit(token Token) error {
	if token.Zxid <= 0 {
		return errs.Wrap("zksync", "fence", "", errs.Misuse("token %s belongs to no grant: %w", token, ErrStale))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if token.Compare(f.newest) < 0 {
		return errs.Wrap("zksync", "fence", "", fmt.Errorf("token %s is older than %s: %w", token, f.newest, ErrStale))
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
