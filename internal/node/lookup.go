package node

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// find looks for a node whose create got no answer. A sync comes first: the server to which we are
// connected now may not have heard of a create that another server took. A create that is not applied
// by then is refused while the session is with another server. If the session comes back to the first
// server, it may be applied after all. For this case the epoch looks again (AmbiguousCreate).
func (s *Spec) find(ctx context.Context, e *zkconn.Epoch, uuid string) (*Node, error) {
	at := e.Connection()
	n, err := s.lookUp(ctx, e, uuid)
	if n == nil && (err != nil || !s.KeepDuplicates) {
		e.AmbiguousCreate(s.Dir, Prefix(uuid), at)
	}
	if err != nil {
		Abandon(e, s.Dir, uuid)
		return nil, err
	}
	if n == nil {
		return nil, ErrAgain
	}
	return n, nil
}

// lookUp returns the node that the attempt with this uuid has made, nil if there is none.
func (s *Spec) lookUp(ctx context.Context, e *zkconn.Epoch, uuid string) (*Node, error) {
	names, err := e.SyncedChildren(ctx, s.Dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, s.Name(uuid)) {
			continue
		}
		n := &Node{Name: name, Path: s.Dir + "/" + name, UUID: uuid, Epoch: e}
		if err := s.stat(ctx, n); !errors.Is(err, ErrGone) {
			return n, err
		}
	}
	return nil, nil
}
