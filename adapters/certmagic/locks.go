package zkcertmagic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// Lock implements certmagic.Locker. The lock of a process that dies is free when its session has ended.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lease, err := s.mutex(name).LockContext(ctx)
	if err == nil {
		s.keep(name, lease)
	}
	return err
}

// TryLock implements certmagic.TryLocker.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.mutex(name).TryLockContext(ctx)
	if errors.Is(err, zksync.ErrNotAcquired) {
		return false, nil
	}
	if err == nil {
		s.keep(name, lease)
	}
	return err == nil, err
}

// RenewLockLease implements certmagic.LockLeaseRenewer. The session renews its locks by itself, so this is where certmagic hears
// that one was lost: then it is locked again, if it is free. Otherwise it fails, and certmagic tries the operation again later.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	lease := first(s.held[name])
	s.mu.Unlock()
	if lease == nil {
		return s.notHeld(name)
	}
	if lease.Valid() {
		return nil
	}
	again, err := s.mutex(name).TryLockContext(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", lease.Err(), err)
	}
	s.take(name)
	s.keep(name, again)
	return nil
}

// Unlock implements certmagic.Locker, from any goroutine. A lock that was lost needs no release: that is no error, and the logger of
// the session has it.
func (s *Storage) Unlock(_ context.Context, name string) error {
	lease := s.take(name)
	if lease == nil {
		return s.notHeld(name)
	}
	if err := lease.Unlock(); !errors.Is(err, zksync.ErrLost) {
		return err
	}
	return nil
}

func (s *Storage) notHeld(name string) error {
	return fmt.Errorf("zkcertmagic: this process does not hold the lock %q of %s: %w", name, s.dir, zksync.ErrMisuse)
}

func (s *Storage) keep(name string, lease *zksync.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lease)
}

// take forgets a lease, and returns it.
func (s *Storage) take(name string) *zksync.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := first(s.held[name])
	s.held[name] = slices.DeleteFunc(s.held[name], func(l *zksync.Lease) bool { return l == lease })
	if len(s.held[name]) == 0 {
		delete(s.held, name)
	}
	return lease
}

// first is the lease that an Unlock is for. After a loss another goroutine of this process can lock the same name, and an Unlock does
// not say whose it is. The oldest goes first: so the later Unlock of the goroutine that has lost its lease does not end the other one.
func first(held []*zksync.Lease) *zksync.Lease {
	if len(held) == 0 {
		return nil
	}
	return held[0]
}

func (s *Storage) mutex(name string) *zksync.Mutex {
	return zksync.NewMutex(s.s, s.dir+"/locks/"+nodeOf(name), s.opts...)
}

// nodeOf is the name of the node of a lock: escaped as in the path of a URL. A name that the servers refuse, or of more than 200
// bytes, is "%-" and its hash, which no other name contains.
func nodeOf(name string) string {
	switch node := url.PathEscape(name); {
	case node == "", node == ".", node == "..", len(node) > 200:
		sum := sha256.Sum256([]byte(name))
		return "%-" + hex.EncodeToString(sum[:])
	default:
		return node
	}
}
