package zksync

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

var processID = os.Getpid()

// access is what a primitive is given by its constructor: a session, the path, the options.
type access struct {
	s      *Session
	path   string // as the session's user knows it
	set    settings
	misuse error // of the constructor, reported by every call
}

// newAccess checks what a constructor was given. An error waits for the first call.
func newAccess(s *Session, path string, opts []Option) *access {
	a := &access{s: s, path: path}
	if s == nil {
		a.s, a.misuse = newSession(settings{}, nil, ""), errs.ErrNoSession
		return a
	}
	a.set, a.misuse = lockSettings(s.set, opts)
	if len(a.set.acl) == 0 {
		a.set.acl = zk.WorldACL(zk.PermAll)
	}
	if a.misuse == nil {
		a.misuse = node.ValidatePath(path)
	}
	return a
}

// content is the data of a node that is made now, with what c says besides.
func (a *access) content(c node.Content) node.Content {
	c.Owner, c.Since = Owner{Host: a.s.host, PID: processID, Name: a.set.name}, time.Now()
	return c
}

// queue is the queue in the directory sub below the path, "" for the path itself.
func (a *access) queue(sub string, kind Kind, grant queue.Policy) *queue.Queue {
	return queue.New(queue.Queue{
		Client: a.s.client, Logger: a.s.logger,
		Dir: a.s.full(a.path) + sub, Shown: a.path + sub,
		Kind: kind, Weight: 1, Policy: grant, ACL: a.set.acl,
		Data: func() []byte { return a.content(node.Content{}).Encode() },
	})
}

// traced tells the tracer, if there is one, of an acquisition.
func (a *access) traced(ctx context.Context, kind Kind, get func(context.Context) (*Lease, error)) (*Lease, error) {
	t := a.s.set.tracer
	if t == nil {
		return get(ctx)
	}
	began := time.Now()
	ctx = t.AcquireStart(ctx, AcquireStartData{Path: a.path, Kind: kind})
	l, err := get(ctx)
	end := AcquireEndData{Path: a.path, Kind: kind, Err: err, Waited: time.Since(began)}
	if err == nil {
		end.Token, end.Epoch = l.token, uint64(l.p.Epoch.Number())
	}
	t.AcquireEnd(ctx, end)
	return l, err
}

// in runs f in the ZooKeeper session of the moment, and again in the next one when that ends (f
// returns zkconn.ErrOver). f's context ends with ctx and when the session closes; Close waits for f,
// so it must run nothing that is the user's.
func (s *Session) in(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	err := ErrClosed
	s.within(func() { err = s.inUnjoined(ctx, f) })
	return err
}

// inUnjoined is in, but Close does not wait for it.
func (s *Session) inUnjoined(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	for pace := (node.Pace{}); ; {
		e, err := s.client.Epoch(ctx)
		if err == nil {
			err = f(ctx, e)
		}
		switch {
		case err == nil:
			return nil
		case s.ctx.Err() != nil:
			return ErrClosed
		case ctx.Err() == nil && errors.Is(err, zkconn.ErrOver):
		default:
			return node.Reason(ctx, err)
		}
		_ = pace.Rest(ctx, e)
	}
}

// bounded returns ctx such that it also ends, with ErrClosed, when the session closes.
func (s *Session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
