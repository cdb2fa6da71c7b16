package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Pause is that before a request that got no usable answer is repeated.
const Pause = 5 * time.Millisecond

// Founding is the pace at which the nodes of a path are made that nobody has used: first its parent, then they. Where servers go on
// saying that there are none, they must not be asked in a spin.
func Founding() node.Pace { return node.Pace{Free: 2} }

// ErrAgain means that a request should be made again.
var ErrAgain = errors.New("again")

// Insist makes a request that may be made twice until its outcome is known.
func Insist(ctx context.Context, e *zkconn.Epoch, f func() error) error {
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := f()
		if !errors.Is(err, ErrAgain) && !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// ErrGone means that a node is not there any more, which nobody has told.
var ErrGone = errors.New("gone")

// UntilGone waits until there is no node at path. check, if not nil, is called when nothing
// was heard for a session timeout; an error of it ends the wait.
//
// Then it also asks whether the node is there: a server that tells nobody of the end of a node that he may not read
// (3.8 with its later security fixes) would leave us asleep for ever.
func UntilGone(ctx context.Context, e *zkconn.Epoch, path string, check func() error) error {
	seen := int64(0) // the czxid of the node
	look := func() error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		st, there, err := e.Exists(ctx, path)
		switch {
		case err != nil:
			return err
		case !there, seen != 0 && st.Czxid != seen:
			return ErrGone
		}
		seen = st.Czxid
		return nil
	}
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		told := make(chan zkconn.News, 1)
		w, err := e.Watch(ctx, path, func(n zkconn.News) { told <- n })
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		n, err := Await(ctx, e, told, look)
		w.Stop()
		if errors.Is(err, ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		if n == zkconn.Gone || n == zkconn.Missing {
			return nil
		}
	}
}

// Await waits for news. check is called when nothing was heard for a session timeout, and its error ends the wait.
func Await(ctx context.Context, e *zkconn.Epoch, told <-chan zkconn.News, check func() error) (zkconn.News, error) {
	quiet := time.NewTicker(max(e.Timeout(), time.Millisecond))
	defer quiet.Stop()
	for {
		select {
		case n := <-told:
			return n, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-e.Over():
			return 0, zkconn.ErrOver
		case <-quiet.C:
			if err := check(); err != nil {
				return 0, err
			}
		}
	}
}

// Synced waits until the server has caught up with the leader; a directory that does not
// exist is none to catch up with.
func Synced(ctx context.Context, e *zkconn.Epoch, dir string) error {
	if err := e.Sync(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

// Transact makes a transaction, that may be made twice, until its outcome is known.
func Transact(ctx context.Context, e *zkconn.Epoch, ops ...any) (res []zk.MultiResponse, err error) {
	err = Insist(ctx, e, func() error {
		res, err = e.StartMulti(ops...).Wait(ctx, e)
		return err
	})
	return res, err
}

// RefusedAt reports whether a transaction was refused because of its operation at this index, for this reason.
func RefusedAt(err error, index int, reason error) bool {
	var t *zkconn.TxnError
	return errors.As(err, &t) && t.Index == index && errors.Is(t, reason)
}

// closer is what is needed of a session to hear that somebody closes it.
type closer interface {
	Spawn(f func()) bool
	Closed() <-chan struct{}
}

// NodeAtClose has a node removed when the session is closed, unless forget is called before. That of a tapped connection
// lives on, and the node with it; of any other the node goes with the session.
func NodeAtClose(d closer, e *zkconn.Epoch, dir, node string) (forget func()) {
	if e.Ordered() {
		return func() {}
	}
	forgotten := make(chan struct{})
	AtClose(d, forgotten, func() { e.Reap(zkconn.Litter{Dir: dir, Node: node}) })
	return sync.OnceFunc(func() { close(forgotten) })
}

// AtClose has remove called when the session is closed, unless forgotten is closed before.
func AtClose(d closer, forgotten <-chan struct{}, remove func()) {
	if !d.Spawn(func() {
		select {
		case <-d.Closed():
			remove()
		case <-forgotten:
		}
	}) {
		remove()
	}
}

// Parent is the directory of a node on the servers.
func Parent(node string) string {
	for i := len(node) - 1; i > 0; i-- {
		if node[i] == '/' {
			return node[:i]
		}
	}
	return "/"
}

// Jittered is somewhat less than d, differently for everybody who waits for it.
func Jittered(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Conflict reports whether a transaction was refused because something has changed meanwhile.
func Conflict(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) ||
		errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNotEmpty)
}

// Rest is a pause between tries that grows. The first try comes at once: mostly something has just
// changed. But where somebody has removed nodes by hand, the servers must not be asked in a spin.
type Rest time.Duration

func (r *Rest) Take(ctx context.Context, e *zkconn.Epoch) error {
	d := time.Duration(*r)
	*r = Rest(min(max(2*d, Pause), time.Second))
	if d == 0 {
		return nil
	}
	return node.Sleep(ctx, e, Jittered(d))
}

// Answered reports whether the outcome of a call is there.
func Answered(call *zkconn.Call[[]zk.MultiResponse]) bool {
	select {
	case <-call.Done():
		return true
	default:
		return false
	}
}

// ACLSize is how much an ACL takes in a request.
func ACLSize(acl []zk.ACL) int {
	size := 4
	for _, a := range acl {
		size += 4 + 4 + len(a.Scheme) + 4 + len(a.ID)
	}
	return size
}

// MaxTransaction is what the servers accept in one request: jute.maxbuffer, if nobody has changed it.
const MaxTransaction = 1<<20 - 1

// LookPause is the first pause between the departure of a member and a look at the others.
// Mostly the end of the round comes right behind it.
const LookPause = 10 * time.Millisecond
