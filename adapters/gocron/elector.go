package zkgocron

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

// Elector is a gocron.Elector: a candidate of an election that gocron asks whether it leads.
type Elector struct {
	path string

	mu    sync.Mutex
	lease *zksync.Lease // of the leadership, present or past
	err   error         // why it is no candidate any more
}

// NewElector stands as a candidate from now on, in the background, until ctx or the session ends. It is for
// gocron.WithDistributedElector. The options are those of zkelection.New.
func NewElector(ctx context.Context, s *zksync.Session, path string, self zkelection.Candidate, opts ...zksync.Option) *Elector {
	e := &Elector{path: path}
	election := zkelection.New(s, path, self, opts...)
	go func() {
		var err error
		for err == nil { // nil: it has led until ctx or the session has ended, which the next round returns
			err = election.Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
				e.set(l, nil)
				<-ctx.Done()
				return nil
			})
		}
		e.set(nil, err)
	}()
	return e
}

func (e *Elector) set(l *zksync.Lease, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease, e.err = l, err
}

// IsLeader implements gocron.Elector, and sends nothing. If another candidate leads, or none yet, the error is
// zksync.ErrNotAcquired, and gocron skips the tick. Else it is the one that has ended the candidacy.
func (e *Elector) IsLeader(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.lease != nil && e.lease.Valid():
		return nil
	case e.err != nil:
		return e.err
	}
	return fmt.Errorf("zkgocron: not the leader of %s: %w", e.path, zksync.ErrNotAcquired)
}

// Lease is the lease of the leadership, or nil. A job can stop when it is lost (Done), and fence its writes (Token, Guard):
// gocron does not stop it.
func (e *Elector) Lease() *zksync.Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != nil && e.lease.Valid() {
		return e.lease
	}
	return nil
}
