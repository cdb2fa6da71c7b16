package zkonce

import (
	"context"
	"errors"
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

// Promise is a value that comes later: java.util.concurrent's CompletableFuture without callbacks. One call
// in the cluster gives it, or says that it will not come. Nothing takes the place of a process that dies:
// wait with a deadline.
type Promise[T any] struct {
	at    *session.Access
	terms record.Terms[fate]

	known session.Memory[fate]

	mu      sync.Mutex
	awaited *session.Await[fate] // the wait that Done shares with other objects of this path; nil if there is none, or the fate was learned
}

// fate is the data of the base node. While the promise is pending, there is a node below it, which all waiters watch: one
// transaction writes the fate and deletes that node.
type fate struct {
	Done   bool    `json:"done"`
	By     string  `json:"by,omitempty"` // names the call that has decided it
	Value  []byte  `json:"value,omitempty"`
	Failed *string `json:"failed,omitempty"`
}

// Failure is the error of [Promise.Wait] for a promise that has failed.
type Failure struct {
	Message string // of Fail
}

func (f *Failure) Error() string { return "zkonce: the promise has failed: " + f.Message }

// errRemoved is the error when a promise has lost nodes that this package never deletes.
var errRemoved = errs.Broken("the promise", "another program has removed nodes of it")

// NewPromise names a promise. Its options are WithACL, WithName and WithCodec.
func NewPromise[T any](s *zksync.Session, path string, opts ...zksync.Option) *Promise[T] {
	p := &Promise[T]{at: session.NewValueAccess("zkonce", (*session.Session)(s), path, opts)}
	p.terms.Base, p.terms.ACL, p.terms.Type = p.at.Full(path)+"/"+layout.Promise, p.at.ACL(), layout.Promise
	p.terms.Keys = []string{"done"}
	p.terms.First = func() (fate, []string) { return fate{}, []string{p.pending(), p.writers()} }
	p.terms.Check = func(fate) error { return nil }
	p.terms.Read = p.known.Read
	p.known.At, p.known.Node, p.known.Final = p.at, p.terms.Base, func(c zkconn.Content) *fate {
		if f, ok := p.terms.Decode(c.Data); ok && f.Done {
			return &f
		}
		return nil
	}
	return p
}

// made is p, which NewPromise has made. Of a zero or nil value it panics.
func (p *Promise[T]) made() *Promise[T] {
	if p == nil || p.at == nil {
		panic(errs.Unmade("zkonce", "a Promise", "NewPromise"))
	}
	return p
}

func (p *Promise[T]) pending() string { return p.terms.Base + "/pending" }
func (p *Promise[T]) writers() string { return p.terms.Base + "/writers" }

// Complete gives the promise its value, of at most 700 KB, unless it is decided, and reports whether this
// call has decided it.
func (p *Promise[T]) Complete(ctx context.Context, v T) (bool, error) {
	if err := p.made().at.Misuse(); err != nil {
		return false, p.at.Named("complete", err)
	}
	data, err := codec.Encode(p.at.Settings.Codec, v, codec.Limit-maxValue)
	if err != nil {
		return false, p.at.Named("complete", err)
	}
	return p.decide(ctx, "complete", fate{Value: data})
}

// Fail is [Promise.Complete] for a value that will not come: each Wait then fails with a *[Failure]. A
// message has at most 64 KB.
func (p *Promise[T]) Fail(ctx context.Context, msg string) (bool, error) {
	if p.made(); len(msg) > maxMessage {
		return false, p.at.Named("fail", errs.Misuse("a message of %d bytes; stay within %d", len(msg), maxMessage))
	}
	msg = strings.ToValidUTF8(msg, "\uFFFD") // as JSON would do it; so this object has the text that the others have
	return p.decide(ctx, "fail", fate{Failed: &msg})
}

// maxMessage is the greatest size of a message. JSON may need six times as much for it.
const maxMessage = 64 << 10

// decide decides the promise, unless it is decided.
func (p *Promise[T]) decide(ctx context.Context, op string, f fate) (first bool, failed error) {
	f.Done, f.By = true, node.NewUUID()
	doubt := false
	now, err := p.run(ctx, func(ctx context.Context, e *zkconn.Epoch) (*fate, error) {
		for seen, pace := int64(0), (node.Pace{Free: 2}); ; {
			_, err := p.at.Apply(ctx, e, p.writers(),
				&zk.DeleteRequest{Path: p.pending(), Version: -1},
				&zk.SetDataRequest{Path: p.terms.Base, Data: record.Encode(f), Version: -1})
			switch {
			case err == nil:
				p.learn(e, f)
				return &f, nil
			case errs.Ambiguous(err):
				if doubt = true; errors.Is(err, zksync.ErrSessionExpired) {
					err = zkconn.ErrOver // the next session finds out
				}
				return nil, err
			case !errors.Is(err, zk.ErrNoNode):
				return nil, err
			}
			if now, err := p.look(ctx, e, &seen); err != nil || now != nil {
				return now, err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return nil, err
			}
		}
	})
	if err == nil {
		// It may be what a request of this call has decided, though another call of this object learned it, or an earlier session.
		return now.By == f.By, nil
	}
	return false, p.at.Named(op, errs.InDoubt(err, doubt))
}

// look is called when nothing was pending. It returns the fate, or nil if the promise is not decided; it makes a promise
// that does not exist. seen is the czxid of the promise that an earlier look found undecided.
func (p *Promise[T]) look(ctx context.Context, e *zkconn.Epoch, seen *int64) (*fate, error) {
	v, err := p.terms.Latest(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case v.T.Done:
		p.learn(e, v.T)
		return &v.T, nil
	case *seen != 0 && v.Founded == *seen: // once is no proof: it may have been made after nothing was found pending
		return nil, errRemoved
	}
	*seen = v.Founded
	return nil, nil
}

// Wait returns the value, as soon as there is one. If the promise has failed, the error is a *[Failure]; if
// its nodes were removed externally, zksync.ErrBroken.
func (p *Promise[T]) Wait(ctx context.Context) (v T, err error) {
	f, err := p.made().run(ctx, func(ctx context.Context, e *zkconn.Epoch) (*fate, error) {
		for seen, pace := int64(0), (node.Pace{Free: 2}); ; {
			if err := record.UntilGone(ctx, e, p.pending(), 0, nil); err != nil {
				return nil, err
			}
			if f, err := p.read(ctx, e, &seen); err != nil || f != nil {
				return f, err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return nil, err
			}
		}
	})
	switch {
	case err != nil:
	case f.Failed != nil:
		err = &Failure{*f.Failed}
	default:
		v, err = codec.Decode[T](p.at.Settings.Codec, f.Value, p.at.Local(p.terms.Base))
	}
	return v, p.at.Named("wait", err)
}

// read is look after the event that nothing is pending any more. The fate was written before that, so the first read usually finds it.
func (p *Promise[T]) read(ctx context.Context, e *zkconn.Epoch, seen *int64) (*fate, error) {
	v, there, err := p.terms.Peek(ctx, e)
	switch {
	case err != nil:
		return nil, err
	case there && v.T.Done:
		p.learn(e, v.T)
		return &v.T, nil
	}
	return p.look(ctx, e, seen)
}

// Done is closed when the promise is decided. If the wait fails, for example because nodes were removed
// externally, the channel stays open, and the next call of Done begins again.
func (p *Promise[T]) Done() <-chan struct{} {
	p.made().mu.Lock()
	defer p.mu.Unlock()
	known, _ := p.known.Recall()
	switch {
	case known != nil:
		return decided
	case p.awaited != nil:
	case p.at.Misuse() != nil:
		return never
	default:
		p.awaited = session.AwaitOf(p.at.Session, p.pending(), p.asks)
	}
	return p.awaited.Done()
}

// asks is what Done asks. It does not look after a time without an event: the servers hide the end of a node only from a
// session that may not read it, which may not read the base node, either.
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

// decided is what Done returns for a promise that is decided, and never for one that no call can use.
var decided, never = make(chan struct{}), make(chan struct{})

func init() { close(decided) }

// run runs f as Access.Run does, but not if the fate is known. It returns the fate.
func (p *Promise[T]) run(ctx context.Context, f func(context.Context, *zkconn.Epoch) (*fate, error)) (now *fate, err error) {
	p.hear()
	if now, err = p.known.Now(ctx); now != nil || err != nil {
		return now, err
	}
	err = p.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
		if now, _ = p.known.Recall(); now != nil { // another call has learned it meanwhile
			return nil
		}
		now, err = f(ctx, e)
		return err
	})
	return now, err
}

// hear learns what the wait of Done knows, if another object has asked for it.
func (p *Promise[T]) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awaited == nil {
		return
	}
	if f := p.awaited.Known(); f != nil {
		p.known.Learn(nil, *f)
		p.awaited = nil
	}
}

func (p *Promise[T]) learn(e *zkconn.Epoch, f fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.Learn(e, f)
	if p.awaited != nil {
		p.awaited.Learn(f)
		p.awaited = nil
	}
}

// forget has the next call ask the servers.
func (p *Promise[T]) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.Forget()
	p.awaited = nil
}
