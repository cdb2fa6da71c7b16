// Package writers makes changes that are applied once, and says whether they were.
//
// A writer is an ephemeral node of the session, below the record. Its version counts the changes that it has made: each
// change is one transaction, which first writes to the node at the version that the writer knows. So the servers apply
// the change at most once, however often the request is sent, and however late a copy of it arrives. If the answer was
// lost, the request is sent again, and a refusal at the writer's node says that an earlier copy was applied. A new writer
// makes its node together with its first change, so it costs no request of its own.
//
// The idea of a record of completion, which is changed in one step with the object, is that of RIFL (Lee, Park, Kejriwal,
// Matsushita, Ousterhout: Implementing Linearizability at Large Scale and Low Latency, 2015).
package writers

import (
	"container/list"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Writers are the writers of a session, for all its records. They are safe for use by many goroutines: each change has a
// writer of its own while it is made.
type Writers struct {
	mu   sync.Mutex
	e    *zkconn.Epoch
	idle map[string][]*writer // by directory; all are of e
	all  list.List            // of those, the least recently used first
}

// kept is how many idle nodes stay however long they are idle. Others stay for a while: if they were removed to make room,
// records that are changed in turn would cost a removal for each change. But there are never more than most: the transaction
// that ends a session has the paths of all its ephemeral nodes, and if it becomes longer than the servers read (a megabyte),
// they all fail, and do not start again (ZOOKEEPER-4306).
const (
	kept   = 64
	awhile = time.Minute
	most   = 1000
)

// writer is one node.
type writer struct {
	e         *zkconn.Epoch
	dir, name string
	acl       []zk.ACL
	version   int32  // of its node; -1 if that is yet to be made
	change    string // names the present change: it is the data of the node once that is applied

	used time.Time     // when it last became idle
	idle *list.Element // in Writers.all

	call    *zkconn.Call[[]zk.MultiResponse] // the newest request
	unknown bool                             // a request for the present change has no known outcome
}

// ErrMoved is the error of a change with a link that was not applied, and will not be: the connection is another one.
var ErrMoved = errors.New("the connection has changed")

// ErrNoDir means that the directory of the writers does not exist. It is zk.ErrNoNode itself, so compare it with ==: an
// operation that misses its node ends with a *zkconn.TxnError, which only wraps that.
var ErrNoDir = zk.ErrNoNode

// Apply makes a change of nodes once. dir is the directory of its writers. With a link, the number of a connection, the change
// is sent only there. The results belong to ops; they are nil if the answer was lost. After a *zkconn.TxnError, with the
// index in ops, the change cannot be applied later.
//
// If dir does not exist, the error is [ErrNoDir]; a late copy of a lost request may then be applied once the
// caller creates dir, so the servers must refuse ops. The directory of a life is never created again (see [record.WritersOf]): there
// the error is ambiguous after a lost request, as it is whenever the outcome is unknown. zkconn.ErrOver means that nothing was changed.
func (ws *Writers) Apply(ctx context.Context, e *zkconn.Epoch, link int64, dir string, acl []zk.ACL, ops ...any) ([]zk.MultiResponse, error) {
	for {
		w := ws.take(e, dir, acl)
		res, err := w.send(ctx, link, append([]any{w.step(w.change)}, ops...))
		res, err = w.outcome(ctx, res, err)
		switch {
		case errors.Is(err, errNoWriter) && w.isNew(): // so dir is missing
			// Nothing was changed, unless the record was removed since, and what was changed with it. If a request was
			// lost, a copy of it may yet make the node.
			if w.unknown {
				w.abandon()
				if record.IsLife(dir) { // it was there, and the lost request may have been applied
					return nil, errs.MarkAmbiguous(errNoWriter)
				}
			}
			return nil, ErrNoDir
		case w.unknown:
			w.abandon()
			if errors.Is(err, zkconn.ErrOver) {
				err = errs.ErrSessionExpired
			}
			return nil, errs.MarkAmbiguous(err)
		case errors.Is(err, errNoWriter):
			continue // the node was removed externally; a new one shows whether the directory is still there
		case !w.isNew():
			ws.put(w)
		}
		return res, err
	}
}

// take returns a writer that is not in use.
func (ws *Writers) take(e *zkconn.Epoch, dir string, acl []zk.ACL) *writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if idle := ws.idle[dir]; ws.e == e && len(idle) > 0 {
		w := idle[len(idle)-1]
		ws.drop(w)
		w.change, w.unknown = named(e, node.NewUUID()), false
		return w
	}
	return &writer{e: e, dir: dir, name: node.Prefix(node.NewUUID()) + "writer", acl: acl, version: -1, change: named(e, node.NewUUID())}
}

// drop takes an idle writer out. mu is held.
func (ws *Writers) drop(w *writer) {
	ws.all.Remove(w.idle)
	same := slices.DeleteFunc(ws.idle[w.dir], func(other *writer) bool { return other == w })
	if ws.idle[w.dir] = same; len(same) == 0 {
		delete(ws.idle, w.dir)
	}
}

// put keeps a writer for later, and has some removed that were not used for a while.
func (ws *Writers) put(w *writer) {
	if w.version == math.MaxInt32 { // the next change would make it negative
		w.remove()
		return
	}
	for _, old := range ws.keep(w) {
		old.remove()
	}
}

// keep returns the writers that are to be removed: two at most, so that they cost little beside a change. The nodes of an
// earlier session are gone with that.
func (ws *Writers) keep(w *writer) (out []*writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.e != w.e {
		ws.e, ws.idle = w.e, map[string][]*writer{}
		ws.all.Init()
	}
	w.used, w.idle = time.Now(), ws.all.PushBack(w)
	ws.idle[w.dir] = append(ws.idle[w.dir], w)
	for len(out) < 2 && ws.all.Len() > kept {
		first := ws.all.Front().Value.(*writer)
		if ws.all.Len() <= most && w.used.Sub(first.used) < awhile {
			break
		}
		ws.drop(first)
		out = append(out, first)
	}
	return out
}

// errNoWriter means that the servers refused a change because the writer's node, or its directory, is not there.
var errNoWriter = errs.Broken("what is at the path", "nodes below it were removed externally")

// isNew reports whether the node is yet to be made, by the first change.
func (w *writer) isNew() bool { return w.version < 0 }

func (w *writer) path() string { return w.dir + "/" + w.name }

// step is the operation that comes first in the transaction of a change: it can be applied once.
func (w *writer) step(change string) any {
	if w.isNew() {
		return &zk.CreateRequest{Path: w.path(), Data: []byte(change), Acl: w.acl, Flags: zk.FlagEphemeral}
	}
	return &zk.SetDataRequest{Path: w.path(), Data: []byte(change), Version: w.version}
}

// outcome finds out what became of the change. It leaves unknown set if that is not known.
func (w *writer) outcome(ctx context.Context, res []zk.MultiResponse, err error) ([]zk.MultiResponse, error) {
	var refused *zkconn.TxnError
	switch {
	case err == nil:
		w.stepDone()
		return res[1:], nil
	case w.stepped(err):
		w.stepDone()
		return nil, nil
	case errors.Is(err, ErrMoved):
	case !errors.As(err, &refused):
		return nil, err
	case refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
		return nil, errNoWriter
	default:
		err = &zkconn.TxnError{Index: refused.Index - 1, Err: refused.Err}
	}
	if w.unknown {
		if applied, err := w.spend(ctx); applied || err != nil {
			return nil, err
		}
	}
	return nil, err
}

// stepped reports whether the step was refused because it had been made before.
func (w *writer) stepped(err error) bool {
	if w.isNew() {
		return record.RefusedAt(err, 0, zk.ErrNodeExists)
	}
	return record.RefusedAt(err, 0, zk.ErrBadVersion)
}

func (w *writer) stepDone() { w.version, w.unknown = w.version+1, false }

// spend makes the step without the change. A copy of the refused request may still arrive, when the reason of the refusal
// has passed: after the step the servers refuse it. If it has arrived before the step, the change was applied.
func (w *writer) spend(ctx context.Context) (applied bool, err error) {
	_, err = w.send(ctx, 0, []any{w.step(named(w.e, ""))})
	if w.stepped(err) {
		// Either that copy, or this very step, whose first answer was lost. The answer that refused it shows that the
		// server knows which, and the client does not go to a server that knows less.
		var data []byte
		data, _, err = w.e.Get(ctx, w.path())
		applied = string(data) == w.change
	}
	if err == nil {
		w.stepDone()
	}
	return applied, err
}

// send sends a transaction until there is an answer. With a link, nothing more is sent once the connection is another one: ErrMoved.
func (w *writer) send(ctx context.Context, link int64, ops []any) (res []zk.MultiResponse, err error) {
	var here func() bool
	if link != 0 {
		here = func() bool { return w.e.Connection() == link }
	}
	r := node.Insist(ctx, w.e)
	for r.Next() {
		w.call = w.e.StartMultiIf(here, ops...)
		res, err = w.call.Wait(ctx, w.e)
		// What the end of the session has refused may have arrived twice, and the node that would show it is gone.
		if !w.call.Answered() || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrOver) || errors.Is(err, zk.ErrSessionExpired) {
			w.unknown = true
		}
		if r.Err = err; here != nil && errors.Is(err, zkconn.ErrNotSent) && !here() {
			r.Err = ErrMoved
		}
	}
	return res, r.Err
}

// abandon has the node removed, also if a request may yet make it. Then no copy of a request can change the record any
// more, except together with the node.
func (w *writer) abandon() {
	call, made, unknown := w.call, !w.isNew(), w.unknown
	if !made {
		w.e.AmbiguousCreate(w.dir, w.name, w.e.Connection())
	}
	w.e.Reap(zkconn.Orphan{Dir: w.dir, Prefix: w.name, Pending: call.Done(), Outcome: func() (string, bool) {
		if made {
			return w.path(), false
		}
		_, err := call.Result()
		return "", unknown || !errors.Is(err, zkconn.ErrNotSent) // what is refused may have arrived twice
	}})
}

// remove has the node removed; no request for it is under way.
func (w *writer) remove() {
	w.e.Reap(zkconn.Orphan{Dir: w.dir, Node: w.path()})
}
