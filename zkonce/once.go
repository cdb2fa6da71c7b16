package zkonce

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Once is a function that runs once in the cluster. All Onces with the same path are
// one. It is safe for use by many goroutines.
type Once struct {
	path string
	m    *zksync.Mutex // held while the function runs
	at   *session.Access

	mu    sync.Mutex
	known *outcome // the kept outcome; nil if it is not known, and after an event of its watch
}

// outcome is the data of the result node.
type outcome struct {
	By    string  `json:"by"` // names the attempt that wrote it
	Value []byte  `json:"value,omitempty"`
	Panic *string `json:"panic,omitempty"` // the text of a panic; DoContext does not keep panics
}

// New names a Once by a path of its own, which is created when it is first needed. It does no I/O. The first call
// reports a malformed path, a nil session, an option that is not one of a lock, zksync.WithLinger or zksync.WithAsyncUnlock as
// zksync.ErrMisuse: a lock entry that lingers would look like a function that runs.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Once {
	lock := (*share.Cohort)(zksync.NewMutex(s, path+"/lock", opts...)).Part()
	return &Once{path: path, m: (*zksync.Mutex)(lock), at: session.NewAccess((*session.Session)(s), path, opts).Without("WithLinger", "WithAsyncUnlock").Of(layout.Once)}
}

// made is o, which New has made. Of a zero or nil value it panics.
func (o *Once) made() *Once {
	if o == nil || o.at == nil {
		panic(errs.Unmade("a Once", "New"))
	}
	return o
}

// DoContext returns the kept result. If there is none, it runs f, keeps f's result, and returns it. The context of f
// ends with ctx, and with the lease under which f runs (cause zksync.ErrLost); [zksync.LeaseFrom] finds that lease.
//
// It blocks while another call runs its function, in this process or another, and while f runs. When ctx ends,
// the waiting ends at once, and so does f's context. Without a connection it continues to wait. If the session
// is lost before f begins, it tries again in the next session. If the lease is lost before the result could be
// kept, the error wraps zksync.ErrLost, and another process may have begun its function. If the connection is
// lost while the result is written, DoContext finds out the outcome, in the next session if need be. If the
// session is closed, the error is zksync.ErrClosed.
//
// Errors: if f returns an error, DoContext returns it and keeps nothing: the next caller runs its function. If ctx
// ends, the error wraps the context's error. A result that is too large (more than about 700 KB) is zksync.ErrMisuse.
// If the function whose result is kept panicked, the error says so. A path with nodes of another type, for example
// those of a [Promise], is zksync.ErrMisuse. If ctx ends, or the session is closed, before it
// is known whether the result is kept, the error also satisfies [zksync.Ambiguous]; the session still writes the
// result as long as the lease lasts.
//
// Requests: six if f runs; two for the next call, also of the object that ran f; none once this object has read the result.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.made().value(ctx, f, false)
}

// TryDoContext is like [Once.DoContext], but does not wait while another call runs its function: then it
// fails with zksync.ErrNotAcquired. It blocks for the servers' answers and for f. If the session is lost
// before f begins, it fails with zksync.ErrLost.
func (o *Once) TryDoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.made().value(ctx, f, true)
}

// value is DoContext, or TryDoContext if try is set.
func (o *Once) value(ctx context.Context, f func(context.Context) ([]byte, error), try bool) ([]byte, error) {
	r, err := o.do(ctx, try, work{f: func(ctx context.Context) (*outcome, error) {
		value, err := f(ctx)
		return &outcome{Value: value}, err
	}})
	if err != nil {
		return nil, o.wrap("once", err)
	}
	if r.Panic != nil {
		return nil, o.wrap("once", fmt.Errorf("it panicked: %s", *r.Panic))
	}
	return r.Value, nil
}

// Done reports whether a result is kept. It blocks for the servers' answers, until ctx ends (the error wraps the
// context's error). Without a connection it waits; in a new session it asks again. If the session is closed, the
// error is zksync.ErrClosed. It costs at most two requests, none if this object knows the result.
func (o *Once) Done(ctx context.Context) (bool, error) {
	r, err := o.made().kept(ctx)
	return r != nil, o.wrap("once", err)
}

// Reset removes the result: the next caller runs its function again. Other objects that know the result are told as
// soon as the servers can reach them. It blocks while a function runs, until ctx ends (the error wraps the context's
// error). It waits through disconnects and lost sessions. If the session is closed, the error is zksync.ErrClosed.
// It costs the requests of a lock, and one.
func (o *Once) Reset(ctx context.Context) error {
	if err := o.made().at.Misuse(); err != nil {
		return o.wrap("reset", err)
	}
	// The next call asks the servers again, whether or not the result was removed.
	defer o.forget()
	for pace := (node.Pace{}); ; {
		removed := false
		err := o.m.Do(ctx, func(ctx context.Context, l *zksync.Lease) error {
			err := guarded(ctx, l, &zk.DeleteRequest{Path: o.result(), Version: -1})
			removed = err == nil || errors.Is(err, zk.ErrNoNode)
			return err
		})
		if removed {
			return nil
		}
		// It is safe to try again: a request under this lease cannot be applied after the next lease is granted, so
		// it cannot remove a result that is kept later.
		if (lost(err) || zksync.Ambiguous(err)) && pace.Rest(ctx, nil) == nil {
			continue
		}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return o.wrap("reset", err)
	}
}

// result is the path of the node that keeps the outcome.
func (o *Once) result() string { return o.path + "/result" }

// wrap adds the operation and the path to an error that does not have them.
func (o *Once) wrap(op string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: o.path, Err: err}
}
