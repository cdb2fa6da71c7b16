package reentrant

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/stretchr/testify/require"
)

// A lost hold may be replaced by another goroutine's while its owner gives back a level of it. Whoever
// comes first, the level is given back once: nothing is owed, and a further Unlock panics.
func TestALevelIsGivenBackOnceWhileItsLostHoldIsReplaced(t *testing.T) {
	for name, kind := range map[string]struct {
		hold   hold
		unlock func(m *RWMutex)
	}{
		"Unlock":  {hold{writes: levels{dropIn: 1}}, (*RWMutex).Unlock},
		"RUnlock": {hold{reads: levels{dropIn: 1}}, (*RWMutex).RUnlock},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewRWMutex(zkrwmutex.New(zktest.Run(t).Session(t), "/locks/a"))
				ended, err := m.rw.LockContext(t.Context())
				require.NoError(t, err)
				require.NoError(t, ended.Unlock())
				for range 5000 {
					h := kind.hold
					h.owner, h.lease = current(), (*lease.Lease)(ended)
					m.write = &h
					var replaced sync.WaitGroup
					replaced.Go(func() {
						m.mu.Lock()
						m.replaceLost(m.write)
						m.mu.Unlock()
					})
					kind.unlock(m)
					replaced.Wait()
					require.Empty(t, m.lost)
				}
				require.Panics(t, func() { kind.unlock(m) })
			})
		})
	}
}
