package look

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Reader reads the nodes of one type for its State. After the first error it reads nothing.
type Reader struct {
	Base *Node // the path itself; nil if it does not exist

	Look
	ctx  context.Context
	kind string
	path string
	err  error
}

// State is the State of a type, by its name in package layout: what f makes of the nodes.
func State[T any](ctx context.Context, at *session.Access, kind string, f func(*Reader) T) (st T, err error) {
	err = at.Run(ctx, "state", func(ctx context.Context, e *zkconn.Epoch) error {
		frame, ok := ctx.Value(frameKey{}).(*Frame)
		if !ok {
			frame = new(Frame)
		}
		r := &Reader{Look: Look{at.Session, e, frame}, ctx: ctx, kind: kind, path: at.Path}
		if r.Base = frame.Known; r.Base == nil || r.Base.Path != at.Path {
			r.Base = r.Node(at.Full(at.Path))
		}
		if r.Base != nil && r.Base.Denied {
			r.Fail(zk.ErrNoAuth)
		} else if r.Base != nil && kind != layout.Flight {
			r.Fail(layout.RefuseOther(kind, r.Base.raw, r.Base.Children))
		}
		if r.err == nil {
			st = f(r)
		}
		return r.err
	})
	if err != nil {
		var none T
		return none, err
	}
	return st, nil
}

// Fail ends the State with an error; nil changes nothing.
func (r *Reader) Fail(err error) { r.err = cmp.Or(r.err, err) }

// Node reads a node, by its path on the servers; nil if there is none.
func (r *Reader) Node(full string) *Node {
	if r.err != nil {
		return nil
	}
	n, err := r.Look.Node(r.ctx, full)
	if n != nil && n.Denied {
		err = zk.ErrNoAuth
	}
	r.Fail(err)
	return n
}

// Count is the number of children of a node, by its path on the servers; 0 if it does not exist.
func (r *Reader) Count(full string) int64 {
	if r.err != nil {
		return 0
	}
	err := Absent(r.Watch(r.ctx, full, true))
	var st *zk.Stat
	there := false
	if err == nil {
		st, there, err = r.Epoch.Exists(r.ctx, full)
	}
	if r.Fail(err); err != nil || !there {
		return 0
	}
	return int64(st.NumChildren)
}

// Each calls f with every child of n that has one of these names and still exists, in their order.
func (r *Reader) Each(n *Node, names []string, f func(*Node)) {
	if r.err == nil {
		r.Fail(r.Look.Each(r.ctx, n, names, func(c *Node) error {
			if c.Denied {
				r.Fail(zk.ErrNoAuth)
			} else {
				f(c)
			}
			return r.err
		}))
	}
}

// Queue is the state of the lock in the directory sub below the path.
func (r *Reader) Queue(sub string) zksync.MutexState {
	if r.err != nil {
		return zksync.MutexState{}
	}
	r.Fail(Absent(r.Watch(r.ctx, r.Session.Full(r.path+sub), true)))
	st, err := zksync.NewMutex((*zksync.Session)(r.Session), r.path+sub).State(r.ctx)
	r.Fail(err)
	return st
}

// By puts the holders of a queue, of whom there is one at least, and the number of those who wait, into words: "held by web-3 pid
// 4711 for 12s and 2 others; 1 waits". done is the verb.
func By(done string, q zksync.Summary) string {
	holders := q.In(zksync.Held)
	h := holders[0]
	return wording.By(done, h.Owner, h.Session, h.Since, time.Now(), len(holders)-1) +
		wording.More(int64(len(q.In(zksync.Waiting))), "waits", "wait")
}

// Rows are the rows of children of n.
func (r *Reader) Rows(n *Node, names []string, kind zksync.Kind, state zksync.Standing) []zksync.Contender {
	rows := []zksync.Contender{}
	if r.Brief {
		return rows
	}
	if r.Most > 0 {
		names = names[:min(len(names), r.Most)]
	}
	r.Each(n, names, func(c *Node) {
		row := c.Row(kind, state)
		row.Position = len(rows)
		rows = append(rows, row)
	})
	return rows
}

// Row is the row of a node that is not in a queue.
func (n *Node) Row(kind zksync.Kind, state zksync.Standing) zksync.Contender {
	c := node.Decode(n.Data)
	if c.Since.IsZero() {
		c.Since = time.UnixMilli(n.Stat.Ctime)
	}
	return zksync.Contender{
		Kind: kind, State: state, Owner: zksync.Owner{Host: c.Host, PID: c.PID, Name: c.Name},
		Since: c.Since, Session: n.Stat.EphemeralOwner, Node: n.Path,
	}
}

// Summary is the common part of the State.
func (r *Reader) Summary(state, detail string, args ...any) zksync.Summary {
	return zksync.Summary{
		Path: r.path, Kind: layout.Word(r.kind), State: state, Detail: fmt.Sprintf(detail, args...), Entries: []zksync.Contender{},
	}
}

// Data decodes the data of a node, which other programs may have written. A field that T does not have is an error. Without
// a node or data it returns none.
func Data[T any](r *Reader, n *Node, none T) T {
	if n == nil || len(n.Data) == 0 {
		return none
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(n.Data))
	d.DisallowUnknownFields()
	if d.Decode(&v) != nil || d.More() {
		r.Fail(errs.Misuse("node %s does not hold the data of a %s", errs.ShowPath(n.Path), layout.Word(r.kind)))
	}
	return v
}
