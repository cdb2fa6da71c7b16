package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Reason turns err, with which an attempt ended, into the error for its caller, whose context was
// ctx. The context of a call also ends, with errs.ErrClosed as its cause, when its session closes.
func Reason(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, zkconn.ErrClosed), context.Cause(ctx) == errs.ErrClosed:
		return errs.SameDoubt(err, errs.ErrClosed)
	case ctx.Err() != nil:
		return errs.SameDoubt(err, errs.OfContext(ctx))
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("the servers deny access: check WithAuth and the node's access control list: %w", err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return errs.Misuse("a parent of the path is an ephemeral node, which cannot have children: %w", err)
	case errors.Is(err, zk.ErrInvalidACL):
		return errs.Misuse("the servers refuse the access control list (a digest list for \"auth\" needs WithAuth): %w", err)
	}
	return err
}
