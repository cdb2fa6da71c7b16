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
// A holder that listens has made that node, without data, and watches it: a process that asks writes its name to it. If it
// does not listen, the process that asks makes the node, and the holder finds it when it begins to listen. Either is ephemeral. The
// holder removes it before its entry, and the process that made it to ask removes it when the entry is gone.

// Revocation is a request to the holder of a ticket to give it up.
type Revocation struct {
	t      *Ticket
	listen sync.Once
	come   chan struct{} // closed when it has come; nil until the holder listens
	came   atomic.Bool
	node   atomic.Bool            // there may be a node of ours, or one that we have seen
	heed   atomic.Pointer[func()] // called when it comes; nil for nothing

	listening repeat
	pace      node.Pace // of listening
}

const requestStart = "revoke-"

// requestName is the name of the node that asks the entry with this uuid.
func requestName(uuid string) string { return requestStart + uuid + AsideEnd }

func (r *Revocation) path() string { return r.t.queue.Dir + "/" + requestName(r.t.Entry.UUID) }

// Done is closed when a request comes. The first call makes the node and sets the watch, in the background.
func (r *Revocation) Done() <-chan struct{} {
	r.listen.Do(func() {
		r.come = make(chan struct{})
		r.pace.Free = 2
		r.node.Store(true)
		// drop comes after the ticket is over. So it finds node set, or this finds the ticket over.
		if r.t.Over() {
			r.node.Store(false)
			return
		}
		r.again()
	})
	return r.come
}

// Heed has f called when a request comes, at once if one has come; perhaps twice. f must not block.
func (r *Revocation) Heed(f func()) {
	r.heed.Store(&f)
	if r.Came() {
		f()
	}
}

// Came reports whether a request is known.
func (r *Revocation) Came() bool { return r.came.Load() }

// drop removes the node of the request. The ticket is over. The request that made the node was sent before, and
// will not be sent again. With now the node is gone before the entry, if all goes well: then the next entry is alone.
//
// No lock is held: a request blocks while the connection takes no bytes, and then losses would be reported late.
func (r *Revocation) drop(now bool) {
	if r.node.Swap(false) {
		r.delete(now)
	}
}

func (r *Revocation) delete(now bool) {
	left := zkconn.Orphan{Dir: r.t.queue.Dir, Node: r.path()}
	if now {
		answered, confirmed := confirmation(zkconn.Start(r.t.Epoch, zkconn.DeleteNode(left.Node)), zk.ErrNoNode)
		left.Pending, left.Outcome = answered, unless(confirmed, left.Node)
	}
	r.t.Epoch.Reap(left)
}

// again has the node made, unless it is there, and watched until a process writes to it.
func (r *Revocation) again() { r.listening.ask(r.t.Epoch, r.listenOnce) }

// listenOnce makes the node, unless it is there, watches it, and looks for a request.
func (r *Revocation) listenOnce(ctx context.Context) error {
	t, e := r.t, r.t.Epoch
	if r.Came() || r.pace.Rest(ctx, e) != nil { // the node may be removed externally again and again
		return nil
	}
	// Whether it is still needed is found out when it is its turn on the wire. So what drop sends comes after it.
	_, err := e.StartMultiIf(r.node.Load, &zk.CheckVersionRequest{Path: t.Node, Version: -1},
		&zk.CreateRequest{Path: r.path(), Acl: t.queue.ACL, Flags: zk.FlagEphemeral}).Wait(ctx, e)
	switch {
	case !r.node.Load(): // the ticket is over
		return nil
	case refusedAt(err, 0, zk.ErrNoNode):
		return nil // the watch of the own node tells the holder
	case err != nil && !refusedAt(err, 1, zk.ErrNodeExists):
		t.queue.Log.Debug("cannot listen for a revocation yet", "node", t.ShownNode(), "error", err)
		return err
	}
	// First the watch and then the look, so that nothing comes in between.
	w := e.WatchAll([]string{r.path()}, func(_ string, what zkconn.Event) {
		switch {
		case t.Over():
		case what == zkconn.Changed:
			r.arrive()
		default:
			r.again()
		}
	}, nil)[0]
	err = r.look(ctx)
	for err == nil && !t.readable && !t.Over() && !r.Came() {
		// If we may not read the node, the servers may not tell us of the request.
		if e.Pause(ctx, e.Timeout()/4) != nil {
			return nil
		}
		err = r.look(ctx)
	}
	if err != nil {
		w.Stop()
	}
	return err // if it is not there, the watch tells
}

// look finds out whether there is a request: only a process that asks writes data.
func (r *Revocation) look(ctx context.Context) error {
	st, there, err := r.t.Epoch.Exists(ctx, r.path())
	if there && st.DataLength > 0 {
		r.arrive()
	}
	return err
}

func (r *Revocation) arrive() {
	if r.came.Swap(true) {
		return
	}
	close(r.come)
	if heed := r.heed.Load(); heed != nil {
		(*heed)()
	}
}

// curatorsRequest is what Curator's Revoker writes to the node of a holder.
const curatorsRequest = "__REVOKE__"

// Ask asks the maker of the entry en to give it up. If the maker does not listen yet, it makes the node of the request, whose
// path it returns: the caller must have it removed when the entry is gone. The error is errs.ErrStale if the entry is gone already.
func (q *Queue) Ask(ctx context.Context, e *zkconn.Epoch, en Entry) (made string, err error) {
	if !en.ours() {
		return q.request(ctx, e, en, []any{&zk.SetDataRequest{Path: q.Dir + "/" + en.Name, Data: []byte(curatorsRequest), Version: -1}}, nil)
	}
	write, create := q.writes(en, q.plain())
	return q.request(ctx, e, en, write, create)
}

// ours reports whether the maker of the entry is of this module.
func (e Entry) ours() bool { return node.Announces(e.UUID) || node.Sealed(e.UUID) }

// writes are the transactions that write data to the node of a request that the holder has made, and that make the node.
func (q *Queue) writes(en Entry, data []byte) (write, create []any) {
	there, path := &zk.CheckVersionRequest{Path: q.Dir + "/" + en.Name, Version: -1}, q.Dir+"/"+requestName(en.UUID)
	return []any{there, &zk.SetDataRequest{Path: path, Data: data, Version: -1}},
		[]any{there, &zk.CreateRequest{Path: path, Data: data, Acl: q.ACL, Flags: zk.FlagEphemeral}}
}

// request sends write, or create if there is no node to write to, until one of them is applied.
func (q *Queue) request(ctx context.Context, e *zkconn.Epoch, en Entry, write, create []any) (made string, err error) {
	// Each of them may be repeated: a request is one request, however often it is made.
	doubt := false
	_, removes := write[len(write)-1].(*zk.DeleteRequest)
	for ops, pace := write, (node.Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return made, err
		}
		if len(create) > 0 && &ops[0] == &create[0] {
			made = q.Dir + "/" + requestName(en.UUID)
		}
		_, err := e.StartMulti(ops...).Wait(ctx, e)
		switch {
		case err == nil:
			return made, nil
		case errors.Is(err, zk.ErrSessionExpired):
			return made, zkconn.ErrOver
		case refusedAt(err, 0, zk.ErrNoNode) && doubt && removes:
			return made, nil // by the request whose answer was lost; if not, there is nothing left to remove
		case refusedAt(err, 0, zk.ErrNoNode):
			return made, errs.ErrStale
		case refusedAt(err, 1, zk.ErrNoNode):
			ops = create
		case refusedAt(err, 1, zk.ErrNodeExists):
			ops = write // of the maker of the entry, or of another process that asks, or our own
		case !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent):
			return made, err
		}
		doubt = doubt || zkconn.Unknown(err)
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
