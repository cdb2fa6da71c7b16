package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/bench"
)

var errTwo = errors.New("held by two at a time")

// exclusive has each client of a lock look whether it is alone: a lock that excludes nobody is fast.
func exclusive(open bench.Opener) bench.Opener {
	return func(ctx context.Context, at bench.Site) (*bench.Crew, error) {
		crew, err := open(ctx, at)
		if err != nil {
			return nil, err
		}
		inside := new(atomic.Int32)
		for i, l := range crew.Lockers {
			crew.Lockers[i] = &looker{l, inside}
		}
		return crew, nil
	}
}

type looker struct {
	bench.Locker
	inside *atomic.Int32
}

func (l *looker) Acquire(ctx context.Context) error {
	if err := l.Locker.Acquire(ctx); err != nil {
		return err
	}
	if l.inside.Add(1) > 1 {
		return errTwo
	}
	return nil
}

func (l *looker) Release() error {
	l.inside.Add(-1)
	return l.Locker.Release()
}
