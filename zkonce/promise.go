package zkonce

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Promise is a value that is to come. One call in the cluster gives it, or says that it will not come; all who wait are
// told. It is java.util.concurrent's CompletableFuture as far as that means anything between machines: no function
// travels. Unlike a [Once] it runs nothing, and nobody is tried again in place of a process that dies: wait with a
// deadline, and have somebody call Fail. It is safe for use by many goroutines.
type Promise[T any] struct {
	path  string
	at    *session.Access
	terms record.Terms[fate]

	mu      sync.Mutex
	known   *fate                // it never changes; nil if it is not known yet
	awaited *session.Await[fate] // the wait that Done shares with other objects of this path; nil before the first Done
}

// fate is the data of the base node. While the promise is pending there is a node below it, which all who wait
// watch: one transaction writes the fate and deletes that node.
type fate struct {
	Done   bool    `json:"done"`
	By     string  `json:"by,omitempty"` // names the call that has decided it
	Value  []byte  `json:"value,omitempty"`
	Failed *string `json:"failed,omitempty"`
}

// Failure is the error of [Promise.Wait] for a promise that has failed: find it with errors.As.
type Failure struct {
	Message string // that of Fail
}

// Error tells the message.
func (f *Failure) Error() string { return "zkonce: the promise has failed: " + f.Message }

// errRemoved is the error when a promise has lost nodes that only a removal by hand deletes.
var errRemoved = fmt.Errorf("%w: somebody has removed nodes of the promise", zksync.ErrBroken)

// NewPromise names a promise by a path of its own, which is created when it is first needed. It does no I/O. The first
// call reports a malformed path, a nil session, or one of the options WithHandover, WithLinger, WithMaxHold and
// WithAsyncUnlock as zksync.ErrMisuse; so it does if the path is that of a Once or of anything else.
func NewPromise[T any](s *zksync.Session, path string, opts ...zksync.Option) *Promise[T] {
	p := &Promise[T]{path: path, at: session.NewValueAccess((*session.Session)(s), path, opts)}
	p.terms.Base, p.terms.ACL, p.terms.Type = p.at.Full(path)+"/"+layout.Promise, p.at.ACL(), layout.Promise
	p.terms.Keys = []string{"done"}
	p.terms.First = func() (fate, []string) { return fate{}, []string{p.pending(), p.writers()} }
	p.terms.Check = func(fate) error { return nil }
	return p
}

// made is p, which NewPromise has made. Of a zero or nil value it panics.
func (p *Promise[T]) made() *Promise[T] {
	if p == nil || p.at == nil {
		panic(errs.Unmade("a Promise", "NewPromise"))
	}
	return p
}

func (p *Promise[T]) pending() string { return p.terms.Base + "/pending" }
func (p *Promise[T]) writers() string { return p.terms.Base + "/writers" }

// Complete gives the promise its value, unless it has one or has failed. It reports whether this call has decided
// it. That is exact: if the answer of the servers is lost, Complete finds out whose value is kept.
//
// It blocks until the servers confirm, or ctx ends. Disconnects and lost sessions delay it. If ctx ends, the error wraps
// the context's error and, if the value may have been written, satisfies [zksync.Ambiguous]. If the session is closed, the
// error is zksync.ErrClosed. A value that cannot be encoded, or takes more than 700 KB, is zksync.ErrMisuse, before
// anything is sent. If somebody has removed nodes of the promise by hand, it is zksync.ErrBroken. It costs one request, and none
// if this object knows that the promise is decided. The first use of a path costs a few more.
func (p *Promise[T]) Complete(ctx context.Context, v T) (bool, error) {
	if err := p.made().at.Misuse(); err != nil {
		return false, errs.Wrap("complete", p.path, err)
	}
	data, err := codec.Encode(p.at.Settings.Codec, v, codec.Limit-maxValue)
	if err != nil {
		return false, errs.Wrap("complete", p.path, err)
	}
	return p.decide(ctx, "complete", fate{Value: data})
}

// Fail says that the value will not come, and why. Otherwise it is like Complete. Each Wait then fails with a *[Failure]. A
// message of more than 64 KB is zksync.ErrMisuse; what in it is not UTF-8 is replaced by U+FFFD.
func (p *Promise[T]) Fail(ctx context.Context, msg string) (bool, error) {
	if p.made(); len(msg) > maxMessage {
		return false, errs.Wrap("fail", p.path, fmt.Errorf("%w: a message of %d bytes; stay within %d", zksync.ErrMisuse, len(msg), maxMessage))
	}
	msg = strings.ToValidUTF8(msg, "\uFFFD") // as JSON would do it; so this object tells what the others tell
	return p.decide(ctx, "fail", fate{Failed: &msg})
}

// maxMessage is the greatest size of a message. JSON may need six times as much for it.
const maxMessage = 64 << 10

// decide decides the promise, unless it is decided.
func (p *Promise[T]) decide(ctx context.Context, op string, f fate) (first bool, err error) {
	f.Done, f.By = true, node.NewUUID()
	doubt := false
	err = p.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for seen, pace := int64(0), (node.Pace{Free: 2}); ; {
			_, err := p.at.Apply(ctx, e, p.writers(),
				&zk.DeleteRequest{Path: p.pending(), Version: -1},
				&zk.SetDataRequest{Path: p.terms.Base, Data: record.Encode(f), Version: -1})
			switch {
			case err == nil:
				p.learn(f)
				return nil
			case errs.Ambiguous(err):
				if doubt = true; errors.Is(err, zksync.ErrSessionExpired) {
					err = zkconn.ErrOver // the next session finds out
				}
				return err
			case !errors.Is(err, zk.ErrNoNode):
				return err
			}
			if now, err := p.look(ctx, e, &seen); err != nil || now != nil {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	if err == nil {
		// Another call of this object may have learned what a request of this one has decided.
		return p.fate().By == f.By, nil
	}
	return false, errs.Wrap(op, p.path, errs.InDoubt(err, doubt))
}

// look is called when nothing was pending. It returns the fate, or nil if the promise is not decided; if nobody has
// used it, it creates the promise. seen tells which promise an earlier look found undecided, by the czxid of its base node.
func (p *Promise[T]) look(ctx context.Context, e *zkconn.Epoch, seen *int64) (*fate, error) {
	v, err := p.terms.Latest(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case v.T.Done:
		p.learn(v.T)
		return &v.T, nil
	// The promise may have been made after nothing was found pending. So the caller looks once more.
	case *seen != 0 && v.Founded == *seen:
		return nil, errRemoved
	}
	*seen = v.Founded
	return nil, nil
}

// Wait returns the value, as soon as there is one. If the promise has failed, the error is a *[Failure] with the message.
//
// It blocks until then, or until ctx ends (the error wraps the context's error). It waits through disconnects and lost
// sessions. If the session is closed, the error is zksync.ErrClosed. If a value cannot be decoded, the error names its
// node. If somebody has removed nodes of the promise by hand, it is zksync.ErrBroken. It costs two requests, one of them when
// the event comes that ends the wait; a wait of more than a session timeout asks once in each. It costs none if this object knows how
// the promise was decided. The first use of a path costs a few more.
func (p *Promise[T]) Wait(ctx context.Context) (v T, err error) {
	f, err := p.made().wait(ctx)
	switch {
	case err != nil:
	case f.Failed != nil:
		err = &Failure{*f.Failed}
	default:
		v, err = codec.Decode[T](p.at.Settings.Codec, f.Value, p.at.Local(p.terms.Base))
	}
	return v, errs.Wrap("wait", p.path, err)
}

// wait waits for the fate.
func (p *Promise[T]) wait(ctx context.Context) (f *fate, err error) {
	err = p.in(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for seen, pace := int64(0), (node.Pace{Free: 2}); ; {
			if err := record.UntilGone(ctx, e, p.pending(), 0, nil); err != nil {
				return err
			}
			if f, err := p.read(ctx, e, &seen); err != nil || f != nil {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
	return p.fate(), err
}

// read is look for who heard that nothing is pending. That came after the fate was written, so mostly the first read finds it.
func (p *Promise[T]) read(ctx context.Context, e *zkconn.Epoch, seen *int64) (*fate, error) {
	if v, there, err := p.terms.Peek(ctx, e); err != nil || there && v.T.Done {
		if err == nil {
			p.learn(v.T)
		}
		return &v.T, err
	}
	return p.look(ctx, e, seen)
}

// Done returns a channel that is closed when the promise is decided, as soon as any call of the object knows it; then Wait
// does not block. Done does not block. All objects of one path and session share one wait, which ends like Wait when the session is
// closed or nodes are removed: then the next call of Done begins another one. Until the promise is decided the session keeps a
// watch and some memory for each path, and no goroutine. Done costs the requests of one Wait, one more after each
// disconnect, and none if this object knows how the promise was decided.
func (p *Promise[T]) Done() <-chan struct{} {
	p.made().mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.awaited != nil:
	case p.known != nil:
		return decided
	case p.at.Misuse() != nil:
		return never
	default:
		p.awaited = session.AwaitOf(p.at.Session, p.pending(), p.asks)
	}
	return p.awaited.Done()
}

// asks is what Done asks. No look follows after a time without an event: a session that is not told of the end of a node must
// not read that, and has the same permissions for the base node.
func (p *Promise[T]) asks() session.Asks[fate] {
	seen := int64(0) // see look
	return session.Asks[fate]{
		Begin: func(context.Context, *zkconn.Epoch) error { seen = 0; return nil },
		Event: func(ctx context.Context, e *zkconn.Epoch, what zkconn.Event) (*fate, error) {
			if what == zkconn.Changed {
				return nil, nil
			}
			return p.read(ctx, e, &seen)
		},
	}
}

// What Done returns for a promise that is decided, and for one that no call can use.
var decided, never = make(chan struct{}), make(chan struct{})

func init() { close(decided) }

// in runs f in the present session, and again in the next one if that ends; not at all if the fate is known.
func (p *Promise[T]) in(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	return p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if p.fate() != nil {
			return nil
		}
		return f(ctx, e)
	})
}

// fate is what this object knows of it; nil if that is nothing.
func (p *Promise[T]) fate() *fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil && p.awaited != nil {
		p.known = p.awaited.Known()
	}
	return p.known
}

func (p *Promise[T]) learn(f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = &f
	}
	if p.awaited != nil {
		p.awaited.Learn(f)
	}
}
