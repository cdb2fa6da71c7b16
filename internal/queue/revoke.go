package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A holder may be asked to give the lock up. Its entry may be sealed, so nobody can write to it. The request is another node
// beside it, named by the uuid of the entry, which no other entry ever has. So it cannot reach a later hold.
//
// If the holder listens, it has made that node, without data, and watches it: who asks writes its name to it. If it does not, who
// asks makes the node, and the holder finds it when it begins to listen. Either is ephemeral. The holder removes it before its entry, and who made
// it to ask removes it when the entry is gone.

// request is that to give a ticket up.
type request struct {
	listen sync.Once
	asked  chan struct{} // closed when it has come; nil until somebody listens
	came   atomic.Bool
	node   atomic.Bool // there may be a node of ours, or one that we have seen

	heed atomic.Pointer[func()] // called when it comes; nil for nothing

	listening repeat
	pace      node.Pace // of listening
}

const requestStart = "revoke-"

// requestName is the name of the node that asks the entry with this uuid.
func requestName(uuid string) string { return requestStart + uuid + AsideEnd }

// Revoked is closed when somebody asks for the ticket to be given up. The first call makes the node and sets the watch, in the background.
func (t *Ticket) Revoked() <-chan struct{} {
	t.asked.listen.Do(func() {
		t.asked.asked = make(chan struct{})
		t.asked.pace.Free = 2
		t.asked.node.Store(true)
		// dropRequest comes after gone is set. So it finds node set, or this finds gone set.
		if t.gone.Load() {
			t.asked.node.Store(false)
			return
		}
		t.listenForRequest()
	})
	return t.asked.asked
}

// OnAsked has f called when a request to give the ticket up comes, at once if one has come; perhaps twice. f must not block.
func (t *Ticket) OnAsked(f func()) {
	t.asked.heed.Store(&f)
	if t.WasAsked() {
		f()
	}
}

// WasAsked reports whether a request is known.
func (t *Ticket) WasAsked() bool { return t.asked.came.Load() }

// dropRequest removes the node of the request. The ticket is over. The request that made the node was sent before, and
// will not be sent again. With now the node is gone before the entry, if all goes well: then whoever enters next is alone.
//
// No lock is held: a request blocks while the connection takes no bytes, and those who wait for locks are told of losses late.
func (t *Ticket) dropRequest(now bool) {
	if !t.asked.node.Swap(false) {
		return
	}
	left := zkconn.Orphan{Dir: t.queue.Dir, Node: t.requestPath()}
	if now {
		answered, confirmed := confirmation(zkconn.Start(t.Epoch, zkconn.DeleteNode(left.Node)), zk.ErrNoNode)
		left.Pending, left.Outcome = answered, outcome(left.Node, confirmed)
	}
	t.Epoch.Reap(left)
}

func (t *Ticket) requestPath() string { return t.queue.Dir + "/" + requestName(t.Entry.UUID) }

// listenForRequest has the node made, unless it is there, and watched until somebody writes to it.
func (t *Ticket) listenForRequest() { t.asked.listening.ask(t.Epoch, t.listenOnce) }

// listenOnce makes the node, unless it is there, watches it, and looks whether somebody has asked.
func (t *Ticket) listenOnce(ctx context.Context) error {
	if t.WasAsked() || t.asked.pace.Rest(ctx, t.Epoch) != nil { // somebody may remove the node again and again
		return nil
	}
	path := t.requestPath()
	// Whether it is still needed is found out when it is its turn on the wire. So what dropRequest sends comes after it.
	_, err := t.Epoch.StartMultiIf(t.asked.node.Load, &zk.CheckVersionRequest{Path: t.Node, Version: -1},
		&zk.CreateRequest{Path: path, Acl: t.queue.ACL, Flags: zk.FlagEphemeral}).Wait(ctx, t.Epoch)
	switch {
	case !t.asked.node.Load(): // the ticket is over
		return nil
	case refusedAt(err, 0, zk.ErrNoNode):
		return nil // the watch of the own node tells the holder
	case err != nil && !refusedAt(err, 1, zk.ErrNodeExists):
		t.queue.Logger.Debug("cannot listen for a revocation yet", "node", t.ShownNode(), "cause", err)
		return err
	}
	// First the watch and then the look, so that nothing comes in between.
	w := t.Epoch.WatchAll([]string{path}, func(_ string, what zkconn.Event) {
		switch {
		case t.gone.Load():
		case what == zkconn.Changed:
			t.wasAsked()
		default:
			t.listenForRequest()
		}
	}, nil)[0]
	err = t.lookForRequest(ctx)
	for err == nil && !t.readable && !t.gone.Load() && !t.WasAsked() {
		// If we may not read the node, the servers may not tell us of the request.
		if t.Epoch.Pause(ctx, t.Epoch.Timeout()/4) != nil {
			return nil
		}
		err = t.lookForRequest(ctx)
	}
	if err != nil {
		w.Stop()
	}
	return err // if it is not there, the watch tells
}

// lookForRequest finds out whether somebody has asked: only who asks writes data. If there is no node, it is not for lookForRequest
// to make it.
func (t *Ticket) lookForRequest(ctx context.Context) error {
	st, there, err := t.Epoch.Exists(ctx, t.requestPath())
	if there && st.DataLength > 0 {
		t.wasAsked()
	}
	return err
}

func (t *Ticket) wasAsked() {
	if t.asked.came.Swap(true) {
		return
	}
	close(t.asked.asked)
	if heed := t.asked.heed.Load(); heed != nil {
		(*heed)()
	}
}

// curatorsRequest is what Curator's Revoker writes to the node of a holder.
const curatorsRequest = "__REVOKE__"

// Ask asks the maker of the entry en to give it up. If the maker does not listen yet, it makes the node of the request, whose
// path it returns: the caller must have it removed when the entry is gone. The error is errs.ErrStale if the entry is gone already.
func (q *Queue) Ask(ctx context.Context, e *zkconn.Epoch, en Entry) (made string, err error) {
	entry, path := q.Dir+"/"+en.Name, q.Dir+"/"+requestName(en.UUID)
	there := &zk.CheckVersionRequest{Path: entry, Version: -1}
	write := []any{there, &zk.SetDataRequest{Path: path, Data: q.Data(), Version: -1}}
	create := []any{there, &zk.CreateRequest{Path: path, Data: q.Data(), Acl: q.ACL, Flags: zk.FlagEphemeral}}
	if !node.Announces(en.UUID) && !node.Sealed(en.UUID) {
		write = []any{&zk.SetDataRequest{Path: entry, Data: []byte(curatorsRequest), Version: -1}}
	}
	// Each of them may be repeated: a request is one request, however often it is made.
	for ops, pace := write, (node.Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return made, err
		}
		if len(ops) > 1 && ops[1] == create[1] {
			made = path
		}
		_, err := e.StartMulti(ops...).Wait(ctx, e)
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, zk.ErrSessionExpired):
			return made, zkconn.ErrOver
		case refusedAt(err, 0, zk.ErrNoNode):
			return made, errs.ErrStale
		case refusedAt(err, 1, zk.ErrNoNode):
			ops = create
		case refusedAt(err, 1, zk.ErrNodeExists):
			ops = write // of the maker of the entry, or of another who asks, or our own
		case !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent):
			return made, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return made, err
		}
	}
}

// refusedAt reports whether the servers refused a transaction because of its operation at this index, for this reason.
func refusedAt(err error, index int, reason error) bool {
	var t *zkconn.TxnError
	return errors.As(err, &t) && t.Index == index && errors.Is(t, reason)
}
