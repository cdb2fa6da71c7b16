package zkbarrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// pause is that before a request that got no usable answer is repeated.
const pause = 5 * time.Millisecond

// founding is the pace at which the nodes of a path are made that nobody has used: first its parent, then they. Where servers go on
// saying that there are none, they must not be asked in a spin.
func founding() node.Pace { return node.Pace{Free: 2} }

// errAgain means that a request should be made again.
var errAgain = errors.New("again")

// insist makes a request that may be made twice until its outcome is known.
func insist(ctx context.Context, e *zkconn.Epoch, f func() error) error {
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := f()
		if !errors.Is(err, errAgain) && !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// errGone means that a node is not there any more, which nobody has told.
var errGone = errors.New("gone")

// untilGone waits until there is no node at path. check, if not nil, is called when nothing
// was heard for a session timeout; an error of it ends the wait.
//
// Then it also asks whether the node is there: a server that tells nobody of the end of a node that he may not read
// (3.8 with its later security fixes) would leave us asleep for ever.
func untilGone(ctx context.Context, e *zkconn.Epoch, path string, check func() error) error {
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
			return errGone
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
		n, err := await(ctx, e, told, look)
		w.Stop()
		if errors.Is(err, errGone) {
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

// await waits for news. check is called when nothing was heard for a session timeout, and its error ends the wait.
func await(ctx context.Context, e *zkconn.Epoch, told <-chan zkconn.News, check func() error) (zkconn.News, error) {
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

// synced waits until the server has caught up with the leader; a directory that does not
// exist is none to catch up with.
func synced(ctx context.Context, e *zkconn.Epoch, dir string) error {
	if err := e.Sync(ctx, dir); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return nil
}

func wrap(op, path string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: path, Err: err}
}

// transact makes a transaction, that may be made twice, until its outcome is known.
func transact(ctx context.Context, e *zkconn.Epoch, ops ...any) (res []zk.MultiResponse, err error) {
	err = insist(ctx, e, func() error {
		res, err = e.StartMulti(ops...).Wait(ctx, e)
		return err
	})
	return res, err
}

// refusedAt reports whether a transaction was refused because of its operation at this index, for this reason.
func refusedAt(err error, index int, reason error) bool {
	var t *zkconn.TxnError
	return errors.As(err, &t) && t.Index == index && errors.Is(t, reason)
}

// nodeAtClose has a node removed when the session is closed, unless forget is called before. That of a tapped connection
// lives on, and the node with it; of any other the node goes with the session.
func nodeAtClose(d door.Access, e *zkconn.Epoch, dir, node string) (forget func()) {
	if e.Ordered() {
		return func() {}
	}
	forgotten := make(chan struct{})
	atClose(d, forgotten, func() { e.Reap(zkconn.Litter{Dir: dir, Node: node}) })
	return sync.OnceFunc(func() { close(forgotten) })
}

// atClose has remove called when the session is closed, unless forgotten is closed before.
func atClose(d door.Access, forgotten <-chan struct{}, remove func()) {
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
