package zksync

import (
	"fmt"
	"github.com/go-menagerie/menagerie/internal/errs"
	"sync"
)

// Fence protects a resource of this process from holders that have lost their lock and do not know it yet: it
// refuses every [Token] older than the newest it has admitted. The zero Fence is ready to use. Do not copy
// it.
//
// Call Admit while holding the lock under which the change is made: otherwise a newer holder may come between
// the two. If the resource outlives the process, keep the newest token with its data.
type Fence struct {
	mu     sync.Mutex
	newest Token // guarded by mu; only ever grows
}

// Admit remembers token, unless a newer one was admitted before: then the error is [ErrStale]. The zero token
// is ErrStale and [ErrMisuse].
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

// Newest returns the newest token admitted, or the zero Token.
func (f *Fence) Newest() Token {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}
