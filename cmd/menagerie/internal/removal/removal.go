// Package removal removes one contender of a lock, semaphore or election, which its process has not given up.
package removal

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Seen is a contender as the caller has seen it.
type Seen struct {
	Path  string          // of the lock
	Node  string          // its name or its path; "" for the only holder
	Token string          // as ls shows it
	State zksync.Standing // "" if it may have been granted since
}

// answerLimit is how long Remove waits until the holder has read the reason.
const answerLimit = time.Second

// Remove removes the contender if it is still there and what the caller has seen; else it returns a *Refusal, and nothing was
// removed. The lease of a holder is lost with the reason. told reports that the holder has read it, within a second. After an
// error that is zksync.Ambiguous the contender may have been removed.
func Remove(ctx context.Context, s *zksync.Session, seen Seen, reason string) (told bool, err error) {
	doubt := false // it may have been removed in an earlier session
	err = tree.Looking(ctx, s, func(ctx context.Context, l *tree.Look) error {
		_, row, err := Find(ctx, l, seen.Path, seen.Node)
		switch {
		case doubt && (left(err) || err == nil && row.Token != seen.Token):
			return nil
		case err != nil:
			return err
		case row.Token != seen.Token:
			return refuse("%s has another token: %s", row.Node, tree.Dash(row.Token))
		case seen.State != "" && row.State != seen.State:
			return refuse("%s has been granted meanwhile", row.Node)
		}
		told, err = remove(ctx, (*session.Session)(s), l.Epoch, row, reason)
		var refused *Refusal
		doubt = doubt || err != nil && !errors.As(err, &refused)
		return err
	})
	if err != nil && doubt {
		err = errs.MarkAmbiguous(err)
	}
	return told, err
}

func remove(ctx context.Context, s *session.Session, e *zkconn.Epoch, row tree.Row, reason string) (told bool, err error) {
	dir, name := path.Split(row.Node)
	en, ok := queue.ParseEntry(name)
	if !ok {
		return false, refuse("%s is not the node of a contender", row.Node)
	}
	at := session.NewAccess[session.Option]("zksync", s, path.Clean(dir), nil)
	var why *node.Content
	if row.State == zksync.Held { // a waiter's library queues again, and asks for no reason
		content := at.Content(node.Content{Reason: reason})
		why = &content
	}
	request, err := at.Queue("", en.Kind).Remove(ctx, e, en, why)
	switch {
	case errors.Is(err, zksync.ErrStale):
		return false, gone("%s is gone: it left meanwhile", row.Node)
	case errors.Is(err, zk.ErrNoAuth):
		return false, refuse("we may not delete %s: see --auth", row.Node)
	case err != nil || request == "":
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if record.UntilGone(ctx, e, request, 0, nil) == nil {
		return true, nil
	}
	s.Spawn(func() { forget(s, e, request) })
	return false, nil
}

// unread is how long the reason waits for a holder without a connection, whose session has most likely ended by then.
const unread = time.Minute

// forget removes a reason that no holder reads: the session may last for long, and the next holders should be alone in the directory.
func forget(s *session.Session, e *zkconn.Epoch, request string) {
	ctx, cancel := context.WithTimeout(s.Context(), unread)
	defer cancel()
	if record.UntilGone(ctx, e, request, 0, nil) != nil {
		e.Reap(zkconn.Orphan{Dir: path.Dir(request), Node: request})
	}
}
