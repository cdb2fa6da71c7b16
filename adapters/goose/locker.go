package zkgoose

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/pressly/goose/v3/lock"

	"github.com/go-menagerie/menagerie/zksync"
)

// Locker is a lock.SessionLocker of goose.
type Locker struct {
	path string
	m    *zksync.Mutex

	mu   sync.Mutex
	held map[*sql.Conn]hold
}

var _ lock.SessionLocker = (*Locker)(nil)

type hold struct {
	lease *zksync.Lease
	stop  func() bool // stops to wait for the loss
}

// New names the lock of one database by its path, which is that of a zksync.Mutex.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Locker {
	return &Locker{path: path, m: zksync.NewMutex(s, path, opts...), held: make(map[*sql.Conn]hold)}
}

// SessionLock waits for the lock until ctx ends. If it is lost later, conn is closed: the statement or the transaction under way
// comes to its end, and goose begins no other one.
func (l *Locker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	lease, err := l.m.LockContext(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(lease.Context(), func() { _ = conn.Close() })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[conn] = hold{lease, stop}
	return nil
}

// SessionUnlock unlocks. It returns zksync.ErrLost, and so does Up, if the lock was lost: another process may have migrated at the
// same time.
func (l *Locker) SessionUnlock(_ context.Context, conn *sql.Conn) error {
	l.mu.Lock()
	h, ok := l.held[conn]
	delete(l.held, conn)
	l.mu.Unlock()
	if !ok {
		return fmt.Errorf("zkgoose: %s: unlocked with a connection that does not hold the lock: %w", l.path, zksync.ErrMisuse)
	}
	h.stop()
	return h.lease.Unlock()
}
