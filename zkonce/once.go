package zkonce

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Once is something that is done once in the cluster. Everybody who names the same path
// means the same thing. It is safe for use by many goroutines.
type Once struct {
	path string
	m    *zksync.Mutex // whoever runs holds it
	at   *session.Access

	mu    sync.Mutex
	known *outcome // kept as long as nothing is said of a change; nil otherwise
}

// outcome is the data of the result node.
type outcome struct {
	By    string  `json:"by"` // the attempt that wrote it
	Value []byte  `json:"value,omitempty"`
	Panic *string `json:"panic,omitempty"` // of the method set of sync.Once
}

// New names something to be done once by a path of its own, which is created when first
// needed. It does no I/O. A malformed path, an option that is not one of a lock, a nil
// session, or zksync.WithLinger is reported by the first call as zksync.ErrMisuse: a place that lingers
// would look as if something ran.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Once {
	return &Once{path: path, m: zksync.NewMutex(s, path+"/lock", opts...), at: session.NewAccess((*session.Session)(s), path, opts).Without("WithLinger")}
}

// DoContext returns the result that is kept, or else runs f, keeps what it returned, and
// returns it. The context that f gets ends with ctx and with the lease under which it runs
// ([Lease] finds that), cause zksync.ErrLost.
//
// It blocks while another one runs, here or elsewhere, and while f does. When ctx ends,
// waiting ends at once, and f is told by its context. Without a connection it goes on
// waiting. A session that is lost before f begins is made up for by the next one; if the
// lease is lost before the result could be kept, the error wraps zksync.ErrLost, and another
// one may have begun. If the connection is lost while the result is written, it finds out
// what became of it, in the next session if need be.
//
// Errors: f's own, and then nothing is kept: the next one runs. It fails when ctx ends (the
// error wraps the context's), the session is closed (zksync.ErrClosed), the result is too
// large (zksync.ErrMisuse; some 700 KB are possible), or the function whose result is kept
// panicked. If ctx ends, or the session is closed, before it has found out whether the result
// is kept, the error also satisfies [zksync.Ambiguous].
//
// Requests: six where f runs, two where a result is kept, none where it is known.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.value(ctx, f, false)
}

// TryDoContext is like [Once.DoContext], but does not wait while another one runs: then it
// fails with zksync.ErrNotAcquired. It waits for the servers' answers only, and for f; if the
// session is lost before f begins, it fails with zksync.ErrLost.
func (o *Once) TryDoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.value(ctx, f, true)
}

func (o *Once) value(ctx context.Context, f func(context.Context) ([]byte, error), try bool) ([]byte, error) {
	r, err := o.do(ctx, try, func(ctx context.Context) (*outcome, error) {
		value, err := f(ctx)
		return &outcome{Value: value}, err
	})
	if err != nil {
		return nil, o.wrap("once", err)
	}
	if r.Panic != nil {
		return nil, o.wrap("once", fmt.Errorf("it panicked: %s", *r.Panic))
	}
	return r.Value, nil
}

// Done reports whether a result is kept. It blocks for a read, or none, through disconnects
// and lost sessions until ctx ends (the error wraps the context's) or the session is closed
// (zksync.ErrClosed).
func (o *Once) Done(ctx context.Context) (bool, error) {
	r, err := o.kept(ctx)
	return r != nil, o.wrap("once", err)
}

// Reset removes the result: the next one runs again. Objects that know the result hear of it
// as soon as the servers can tell them. It blocks while one runs, and goes on through
// disconnects and lost sessions until ctx ends (the error wraps the context's) or the session
// is closed (zksync.ErrClosed).
func (o *Once) Reset(ctx context.Context) error {
	if err := o.at.Misuse(); err != nil {
		return o.wrap("reset", err)
	}
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
		// What was asked for under this lease is over by the time of the next one.
		if (lost(err) || zksync.Ambiguous(err)) && pace.Rest(ctx, nil) == nil {
			continue
		}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return o.wrap("reset", err)
	}
}

func (o *Once) result() string { return o.path + "/result" }

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
