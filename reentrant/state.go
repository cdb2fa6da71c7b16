package reentrant

import (
	"context"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// State is [zksync.Mutex.State].
func (m *Mutex) State(ctx context.Context) (zksync.MutexState, error) { return m.made().m.State(ctx) }

// State is [zkrwmutex.RWMutex.State].
func (m *RWMutex) State(ctx context.Context) (zkrwmutex.State, error) { return m.made().rw.State(ctx) }
