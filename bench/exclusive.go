package bench

import (
	"context"
	"errors"
	"sync/atomic"
)

var errTooMany = errors.New("a lock held by more clients at a time than it may be")

// Exclusive has each client of a lock look, whenever it holds, whether it is alone: a lock that excludes nobody is fast.
// With somebody else there the slice fails.
func Exclusive(open Opener) Opener { return limited(1, open) }

// limited has each client look whether at most so many hold.
func limited(most int64, open Opener) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		crew, err := open(ctx, at)
		if err != nil {
			return nil, err
		}
		inside := new(atomic.Int64)
		for i, l := range crew.Lockers {
			crew.Lockers[i] = &looker{l, inside, 1, most}
		}
		return crew, nil
	}
}

// looker is a client that counts itself among those inside, for less time than it holds.
type looker struct {
	Locker
	inside       *atomic.Int64
	weight, most int64
}

func (l *looker) Acquire(ctx context.Context) error {
	if err := l.Locker.Acquire(ctx); err != nil {
		return err
	}
	if l.inside.Add(l.weight) > l.most {
		return errTooMany
	}
	return nil
}

func (l *looker) Release() error {
	l.inside.Add(-l.weight)
	return l.Locker.Release()
}
