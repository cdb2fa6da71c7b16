package zkonce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Once is a function that runs once in the cluster.
type Once struct {
	m  *zksync.Mutex // held while the function runs
	at *session.Access

	known session.Memory[outcome]
}

// outcome is the data of the result node.
type outcome struct {
	By    string  `json:"by"` // names the attempt that wrote it
	Value []byte  `json:"value,omitempty"`
	Panic *string `json:"panic,omitempty"` // the text of a panic; DoContext does not keep panics
}

// New names a Once. Its options are those of a lock, without zksync.WithLinger and zksync.WithAsyncUnlock.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Once {
	lock := (*share.Cohort)(zksync.NewMutex(s, path+"/lock", opts...)).Part("zkonce")
	at := session.NewAccess("zkonce", (*session.Session)(s), path, opts).Without("WithLinger", "WithAsyncUnlock").Of(layout.Once)
	o := &Once{m: (*zksync.Mutex)(lock), at: at}
	o.known.At, o.known.Final = at, func(c zkconn.Content) *outcome {
		r := new(outcome)
		if json.Unmarshal(c.Data, r) != nil {
			return nil
		}
		return r
	}
	if at.Misuse() == nil {
		o.known.Node = at.Full(o.result())
	}
	return o
}

// made is o, which New has made. Of a zero or nil value it panics.
func (o *Once) made() *Once {
	if o == nil || o.at == nil {
		panic(errs.Unmade("zkonce", "a Once", "New"))
	}
	return o
}

// DoContext returns the kept result. If there is none, it runs f, keeps f's result, and returns it. The
// context of f ends with ctx and with the lease under which f runs (cause zksync.ErrLost).
//
// If f returns an error, DoContext returns it and keeps nothing. If the lease is lost before the result is
// kept, the error is zksync.ErrLost. If the function whose result is kept panicked, the error says so. A
// result of more than 700 KB is zksync.ErrMisuse. After a [zksync.Ambiguous] error the result may still be
// written.
func (o *Once) DoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.made().value(ctx, f, false)
}

// TryDoContext is [Once.DoContext], but fails with zksync.ErrNotAcquired while another call runs its
// function, and with zksync.ErrLost if the session is lost before f begins.
func (o *Once) TryDoContext(ctx context.Context, f func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	return o.made().value(ctx, f, true)
}

// value is DoContext, or TryDoContext if try is set.
func (o *Once) value(ctx context.Context, f func(context.Context) ([]byte, error), try bool) ([]byte, error) {
	r, err := o.do(ctx, try, work{f: func(ctx context.Context) (*outcome, error) {
		value, err := f(ctx)
		return &outcome{Value: value}, err
	}})
	if err == nil && r.Panic != nil {
		err = fmt.Errorf("it panicked: %s", *r.Panic)
	}
	if err != nil {
		return nil, o.at.Named("once", err)
	}
	return r.Value, nil
}

// IsDone reports whether a result is kept, as far as the session's server knows.
func (o *Once) IsDone(ctx context.Context) (bool, error) {
	r, err := o.made().kept(ctx)
	return r != nil, o.at.Named("once", err)
}

// Reset removes the result: the next caller runs its function again, but as long as its server lags it may
// still get the removed result. Reset waits while a function runs.
func (o *Once) Reset(ctx context.Context) error {
	if err := o.made().at.Misuse(); err != nil {
		return o.at.Named("reset", err)
	}
	// The next call asks the servers again, whether or not the result was removed.
	defer o.known.Forget()
	doubt := false // an attempt without an answer may have removed it
	for pace := (node.Pace{}); ; {
		removed := false
		err := o.m.Do(ctx, func(ctx context.Context, l *zksync.Lease) error {
			err := guarded(ctx, (*lease.Lease)(l), &zk.DeleteRequest{Path: o.result(), Version: -1})
			removed = err == nil || errors.Is(err, zk.ErrNoNode) && !errors.Is(err, ctx.Err()) // else that is the cause of ctx
			return err
		})
		if removed {
			return nil
		}
		doubt = doubt || zksync.Ambiguous(err)
		// It is safe to try again: the servers refuse a request of this lease once the next lease is granted, so
		// it cannot remove a later result.
		if (lost(err) || zksync.Ambiguous(err)) && pace.Rest(ctx, nil) == nil {
			continue
		}
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return o.at.Named("reset", errs.InDoubt(errs.Reason(err), doubt))
	}
}

// result is the path of the node that keeps the outcome.
func (o *Once) result() string { return o.at.Path + "/result" }
