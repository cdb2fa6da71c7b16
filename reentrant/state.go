package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// State reads the holder and the waiters: see [zksync.Mutex.State].
func (m *Mutex) State(ctx context.Context) (zksync.MutexState, error) { return m.made().m.State(ctx) }

// State reads the holders and the waiters: see [zkrwmutex.RWMutex.State].
func (m *RWMutex) State(ctx context.Context) (zkrwmutex.State, error) { return m.made().rw.State(ctx) }
