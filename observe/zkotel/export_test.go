package zkotel

import "github.com/go-menagerie/menagerie/zksync"

// Locks is how many locks t knows of.
func Locks(t zksync.Tracer) int {
	if p, ok := t.(propagator); ok {
		return len(p.local.locks)
	}
	return len(t.(*tracer).local.locks)
}
