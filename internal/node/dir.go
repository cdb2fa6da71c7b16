package node

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// MakeDir creates a directory and its parents. It tries the leaf first, because mostly only the
// leaf is missing. They are containers, so that the servers remove them when they are empty.
func MakeDir(ctx context.Context, e *zkconn.Epoch, dir string, acl []zk.ACL) error {
	for pace, made := (Pace{}), (Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := e.CreateContainer(ctx, dir, nil, acl)
		if zkconn.Unimplemented(err) { // before 3.5
			_, err = e.Create(ctx, dir, nil, 0, acl)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			parent := dir[:strings.LastIndexByte(dir, '/')]
			if parent == "" {
				return err
			}
			if err := MakeDir(ctx, e, parent, acl); err != nil {
				return err
			}
			if err := made.Rest(ctx, e); err != nil { // no pause the first time; if the parent is gone again, there is one
				return err
			}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			// To create it again is harmless. The pause is for a server that keeps answering nonsense.
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		default:
			return err
		}
	}
}
