package zkonce

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Once is something that is done once in the cluster. Everybody who names the same path
// means the same thing. It is safe for use by many goroutines.
type Once struct {
	path string
	m    *zksync.Mutex // whoever runs holds it
	door door.Access

	mu    sync.Mutex
	known *outcome // kept as long as nothing is said of a change; nil otherwise
}

// outcome is the data of the result node.
type outcome struct {
	By    string  `json:"by"` // the attempt that wrote it
	Value []byte  `json:"value,omitempty"`
	Panic *string `json:"panic,omitempty"` // of the method set of sync.Once
}

// maxValue bounds a result: the servers take no more than a megabyte at a time, and
// base64 and the rest of the request need room.
const maxValue = 700 << 10

// New names something to be done once by a path of its own, which is created when first
// needed. It does no I/O. A malformed path, an option that is not one of a lock, or a nil
// session is reported by the first call as zksync.ErrMisuse.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Once {
	return &Once{path: path, m: zksync.NewMutex(s, path+"/lock", opts...), door: door.Open(s, path)}
}

// DoContext returns the result that is kept, or else runs f, keeps what it returned, and
// returns it. While another one runs, here or elsewhere, it waits. The context that f
// gets ends with ctx and with the lease under which it runs ([Lease] finds that), cause
// zksync.ErrLost.
//
// If f returns an error, DoContext returns it and nothing is kept: the next one runs. So
// it is if the lease was lost before the result could be kept; then the error wraps
// zksync.ErrLost, and another one may have begun. It fails when ctx ends (the error wraps
// the context's), the session is closed (zksync.ErrClosed), or the result is too large
// (zksync.ErrMisuse; some 700 KB are possible). If the connection is lost while the result
// is written, it finds out what became of it, in the next session if need be; if ctx ends,
// or the session is closed, before it has, the error also satisfies [zksync.Ambiguous]. A
// result that is known costs no request.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	r, err := o.do(ctx, func(ctx context.Context) (*outcome, error) {
		value, err := f(ctx)
		return &outcome{Value: value}, err
	})
	return o.value(r, err)
}

// value is what a call returns for an outcome.
func (o *Once) value(r *outcome, err error) ([]byte, error) {
	if err != nil {
		return nil, o.wrap("once", err)
	}
	if r.Panic != nil {
		return nil, o.wrap("once", fmt.Errorf("it panicked: %s", *r.Panic))
	}
	return r.Value, nil
}

// Done reports whether a result is kept. It blocks for a read, or none, until ctx ends.
func (o *Once) Done(ctx context.Context) (bool, error) {
	r, err := o.kept(ctx)
	return r != nil, o.wrap("once", err)
}

// Reset removes the result: the next one runs again. It waits while one runs, and goes on
// through disconnects and lost sessions until ctx ends (the error wraps the context's) or
// the session is closed (zksync.ErrClosed). Objects that know the result hear of it as soon
// as the servers can tell them.
func (o *Once) Reset(ctx context.Context) error {
	removed := false
	var err error
	var pace node.Pace
	for again := true; again; {
		err = o.m.Do(ctx, func(ctx context.Context, l *zksync.Lease) error {
			for pace := (node.Pace{}); ; {
				err := o.guarded(ctx, l, &zk.DeleteRequest{Path: o.result(), Version: -1})
				removed = err == nil || errors.Is(err, zk.ErrNoNode)
				// Asking again is harmless as long as the lease holds.
				if removed || !zksync.Ambiguous(err) || pace.Rest(ctx, nil) != nil {
					return err
				}
			}
		})
		// And with the next lease too: what was asked for under this one is over by then.
		lost := errors.Is(err, zksync.ErrLost) && !errors.Is(err, zksync.ErrMaxHold)
		again = !removed && ctx.Err() == nil && (lost || zksync.Ambiguous(err)) && pace.Rest(ctx, nil) == nil
	}
	o.forget()
	switch {
	case removed:
		return nil
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return o.wrap("reset", err)
}

func (o *Once) result() string { return o.path + "/result" }

// do is DoContext for any outcome.
func (o *Once) do(ctx context.Context, f func(context.Context) (*outcome, error)) (*outcome, error) {
	if err := o.door.Misuse(); err != nil {
		return nil, err
	}
	if r, err := o.kept(ctx); r != nil || err != nil {
		return r, err
	}
	for pace := (node.Pace{}); ; {
		t := &turn{o: o}
		err := o.m.Do(ctx, func(ctx context.Context, l *zksync.Lease) error { return t.take(ctx, l, f) })
		if !t.missed {
			return t.result(ctx, err)
		}
		_ = pace.Rest(ctx, nil) // the next turn finds out whether ctx has ended
	}
}

func (o *Once) wrap(op string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: o.path, Err: err}
}

type leaseKey struct{}

// Lease is the lease under which a function of this package runs, by the context that it
// got; nil in any other context. Its token goes along with every write.
func Lease(ctx context.Context) *zksync.Lease {
	l, _ := ctx.Value(leaseKey{}).(*zksync.Lease)
	return l
}
