package zkcond

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// waiter is one call of Wait.
//
// Only the waiter that has waited longest reads the signals. Every other waiter watches the node
// of the one just before it. So a signal wakes one process, and a broadcast wakes one after the
// other, in order. A woken waiter keeps its node until it holds the lock. Then it removes the node
// and uses its signal in one transaction. If it dies or gives up before, its node is removed and the signal
// stays, and the next waiter finds it.
type waiter struct {
	c     *Cond
	token node.Token // of the hold that was given up
	name  string
	e     *zkconn.Epoch
	seen  snapshot // with the signal
}

// snapshot is the condition's node as it was read.
type snapshot struct {
	signals signals
	version int32
	fresh   bool // not used yet
}

// errGone means that another process has deleted our own node.
var errGone = node.ErrGone

func (c *Cond) newWaiter(held *lease.Lease) *waiter {
	return &waiter{c: c, token: held.Token(), name: waiterName(node.NewUUID(), held.Token())}
}

func (w *waiter) node() string { return w.c.base() + "/" + w.name }

func (w *waiter) replacement() queue.Replacement {
	return queue.Replacement{Dir: w.c.base(), Node: w.node(), Data: w.c.at.Owner(), ACL: w.c.at.ACL()}
}

// await waits for a signal, until ctx or the epoch ends, the node is gone (errGone), or the
// servers refuse.
func (w *waiter) await(ctx context.Context) error {
	select {
	case <-w.c.at.Closed():
		return zksync.ErrClosed
	default:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closing := make(chan struct{})
	defer close(closing)
	if !w.c.at.Spawn(func() {
		select {
		case <-w.c.at.Closed():
			cancel()
		case <-closing:
		}
	}) {
		return zksync.ErrClosed
	}
	for pace := (node.Pace{}); ; {
		signalled, err := w.look(ctx)
		if signalled {
			return nil
		}
		if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) {
			err = pace.Rest(ctx, w.e)
		}
		if err != nil {
			return err
		}
	}
}

// look lists the waiters once, and then waits for the event that matters to this one.
func (w *waiter) look(ctx context.Context) (signalled bool, err error) {
	names, _, err := w.e.Children(ctx, w.c.base())
	if errors.Is(err, zk.ErrNoNode) {
		return false, errGone
	}
	if err != nil {
		return false, err
	}
	all := parseWaiters(names)
	i := slices.IndexFunc(all, func(o waiting) bool { return o.name == w.name })
	if i < 0 {
		return false, errGone
	}
	n := w.subscribe()
	defer n.stop()
	if i > 0 {
		n.watch(w.c.base() + "/" + all[i-1].name)
		return false, n.wait(ctx)
	}
	for {
		n.watch(w.c.base())
		if signalled, err = w.signalled(ctx); signalled || err != nil {
			return signalled, err
		}
		if err := n.wait(ctx); err != nil {
			return false, err
		}
		// Usually the event is a signal for us, and no more watch is needed.
		if signalled, err = w.signalled(ctx); signalled || err != nil {
			return signalled, err
		}
	}
}

// signalled reads whether there is a signal for us; we have waited longest.
func (w *waiter) signalled(ctx context.Context) (ok bool, err error) {
	if w.seen, err = w.read(ctx); err == nil {
		_, ok = w.seen.signals.take(w.token)
	}
	return ok, err
}

func (w *waiter) read(ctx context.Context) (snapshot, error) {
	data, stat, err := w.e.Get(ctx, w.c.base())
	if errors.Is(err, zk.ErrNoNode) {
		return snapshot{}, errGone
	}
	if err != nil {
		return snapshot{}, err
	}
	s, err := parseSignals(data)
	return snapshot{s, stat.Version, true}, err
}

// consume uses the signal, under the lock. If the outcome cannot be found out,
// it removes the node, and the signal is for the next waiter, which at worst is woken in vain.
func (w *waiter) consume(ctx context.Context, l *lease.Lease) {
	ctx, cancel := context.WithTimeout(ctx, consumeWithin)
	defer cancel()
	for pace := (node.Pace{Free: 1}); ; {
		err := w.tryConsume(ctx, l)
		if err == nil {
			return
		}
		if !errors.Is(err, errAgain) || pace.Rest(ctx, w.e) != nil {
			w.leave()
			return
		}
		w.seen.fresh = false
	}
}

// consumeWithin bounds consume: the caller holds the lock by
// then, and returns in any case.
const consumeWithin = time.Second

func (w *waiter) tryConsume(ctx context.Context, l *lease.Lease) (err error) {
	if !w.seen.fresh {
		if w.seen, err = w.read(ctx); err != nil {
			return err
		}
	}
	rest, ok := w.seen.signals.take(w.token)
	if !ok {
		return errGone // the signal has been removed
	}
	// With a check of the lock's node, because only the holder may take a signal away; and a delete of the waiter's node, which
	// fails if this transaction was applied before.
	err = w.c.write(ctx, w.e, rest, w.seen.version,
		&zk.CheckVersionRequest{Path: w.c.at.Full(l.Node()), Version: -1},
		&zk.DeleteRequest{Path: w.node(), Version: -1})
	var refused *zkconn.TxnError
	if errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// leave removes the waiter's node; gone is closed when it is gone.
func (w *waiter) leave() (gone <-chan struct{}) {
	return w.e.Reap(zkconn.Orphan{Dir: w.c.base(), Node: w.node()})
}
