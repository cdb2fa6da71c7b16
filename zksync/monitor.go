package zksync

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// monitor implements door.Monitor: a condition's view of a mutex.
type monitor struct{ c *cohort }

func (m monitor) Session() any   { return m.c.s }
func (m monitor) Path() string   { return m.c.path }
func (m monitor) Holder() *Lease { return m.c.current() }

func (m monitor) Held(l *Lease) (*Lease, error) {
	if m.c.misuse != nil {
		return nil, m.c.misuse
	}
	if l == nil {
		if l = m.c.current(); l == nil || !l.mirror {
			return nil, fmt.Errorf("%w: the lock is not held; call Lock before", ErrMisuse)
		}
		return l, nil
	}
	if l.b != books(m.c) || l.nested != nil {
		return nil, fmt.Errorf("%w: the lease is not one of the condition's lock", ErrMisuse)
	}
	return l, nil
}

func (m monitor) Suspend(ctx context.Context, l *Lease, seat door.Seat) (door.Suspension[*Lease], *Lease, error) {
	l, err := m.Held(l)
	if err != nil {
		return nil, l, err
	}
	e, kept, err := m.c.yield(ctx, l, seat)
	if kept != nil || err == ErrReleased {
		return nil, kept, err
	}
	return &suspended{m.c, e, l.mirror}, nil, err
}

// suspended implements door.Suspension.
type suspended struct {
	c      *cohort
	e      *zkconn.Epoch
	mirror bool
}

func (s *suspended) Epoch() *zkconn.Epoch { return s.e }
func (s *suspended) Forfeit()             {}

func (s *suspended) Regain(ctx context.Context) (*Lease, error) {
	return s.c.acquire(ctx, s.mirror)
}
