package share

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
)

// acquire waits for a lease with await. With the lease it then waits for the holds of this process that
// were lost but still run (see dropIns). If the lease is lost in this second wait, it begins again.
func (s *side) acquire(ctx context.Context, dropIn bool, await func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
	return s.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		for {
			l, err := await(ctx, dropIn)
			if err == nil {
				err = s.admit(ctx, l)
			}
			switch {
			case err == nil:
				return l, nil
			case err != errLostInside:
				return nil, err
			case ctx.Err() != nil:
				return nil, errs.OfContext(ctx)
			}
		}
	})
}

// admit waits until no lost hold of this process keeps l out.
// If it cannot wait any longer, it gives the lease back.
func (s *side) admit(ctx context.Context, l *lease.Lease) (err error) {
	for {
		freed := s.dropIns.against(s.q.Kind, l)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
			continue
		case <-ctx.Done():
			err = errs.At(errs.OfContext(ctx), "a hold of this process that was lost is not unlocked yet")
		case <-s.at.Session.Context().Done():
			err = errs.ErrClosed
		case <-l.Lifetime().Done(): // lost in this wait: it must not go on to keep out the holds for which it waits
			err = errLostInside
		}
		l.GiveBack(node.Grace)
		return err
	}
}

// try makes one attempt, without waiting for other holders. It returns ErrNotAcquired
// if a hold of this process keeps it out, before the attempt or after.
func (s *side) try(ctx context.Context, dropIn bool, attempt func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
	return s.checked(ctx, func(ctx context.Context) (*lease.Lease, error) {
		if s.dropIns.against(s.q.Kind, nil) != nil {
			return nil, errs.ErrNotAcquired
		}
		l, err := attempt(ctx, dropIn)
		if err == nil && s.dropIns.against(s.q.Kind, l) != nil {
			l.GiveBack(node.Grace)
			return nil, errs.ErrNotAcquired
		}
		return l, err
	})
}
