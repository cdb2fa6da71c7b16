package zkgroup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/rounds"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/subtree"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Group is a set of processes that know of each other. It is safe for use by many goroutines.
//
// Its methods wait through disconnects and lost sessions. If ctx ends, the error wraps the context's error. If the session is closed, it is
// zksync.ErrClosed. If the path has the nodes of another type, it is zksync.ErrMisuse. If somebody has removed nodes of
// the group by hand, other than those of members, it may be zksync.ErrBroken.
type Group struct {
	at    *session.Access
	opts  []zksync.Option // of the locks of items
	terms record.Terms[terms]
	made  atomic.Bool // the group was made
}

// terms are the data of the group's node.
type terms struct {
	Hash string `json:"hash"`
}

// New names a group by a path of its own, which is made when the first member joins. All members must name the same
// path. New does no I/O. The first call reports a malformed path, a nil session, or an option that does not belong to
// a group as zksync.ErrMisuse.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Group {
	at := session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)
	g := &Group{at: at, opts: opts}
	base := strings.TrimSuffix(at.Full(path), "/") + "/" + layout.Group
	g.terms = record.Terms[terms]{
		Base: base, ACL: at.ACL(), Type: layout.Group, Keys: []string{"hash"},
		First: func() (terms, []string) {
			return terms{rounds.HashName}, []string{base + "/members", base + "/writers", rounds.Nodes{Base: base}.Working(), base + "/items"}
		},
		Check: func(t terms) error {
			if t.Hash != rounds.HashName {
				return fmt.Errorf("%w: the group divides items by the hash %s, this version by %s", errs.ErrMisuse, errs.Quote(t.Hash), rounds.HashName)
			}
			return nil
		},
	}
	return g
}

// checked is g, which New has made. Of a zero or nil value it panics.
func (g *Group) checked() *Group {
	if g == nil || g.at == nil {
		panic(errs.Unmade("a Group", "New"))
	}
	return g
}

func (g *Group) members() string         { return g.terms.Base + "/members" }
func (g *Group) writers() string         { return g.terms.Base + "/writers" }
func (g *Group) member(id string) string { return g.members() + "/" + escape(id) }

// rounds is where the rounds of Assign are.
func (g *Group) rounds() rounds.Nodes {
	return rounds.Nodes{Base: g.terms.Base, Create: g.create, Apply: g.apply}
}

// apply makes a change once.
func (g *Group) apply(ctx context.Context, e *zkconn.Epoch, ops ...any) error {
	_, err := g.at.Apply(ctx, e, g.writers(), ops...)
	return unlessRemoved(err)
}

// applyOn is apply on one connection only.
func (g *Group) applyOn(ctx context.Context, e *zkconn.Epoch, link int64, ops ...any) error {
	return unlessRemoved(g.at.ApplyOn(ctx, e, link, g.writers(), ops...))
}

// unlessRemoved is errRemoved if there is no record that could be changed.
func unlessRemoved(err error) error {
	if refused := new(zkconn.TxnError); errors.Is(err, zk.ErrNoNode) && !errors.As(err, &refused) {
		return errRemoved
	}
	return err
}

// lifetime is the timeout of another session that has changed something in the group.
func (g *Group) lifetime(ctx context.Context, e *zkconn.Epoch, session int64) (time.Duration, error) {
	return writers.Lifetime(ctx, e, g.writers(), session)
}

var errRemoved = fmt.Errorf("%w: somebody has removed nodes of the group; remove the rest, too, and join again", errs.ErrBroken)

// Member is a process of a group.
type Member struct {
	// ID names the member. No two living members of a group have the same one. Escaped as in a URL's path it has at most 200 bytes.
	ID string
	// Data is what the member says of itself, for example its address. All watchers keep it in memory.
	Data []byte
}

// Members lists the members, sorted by their IDs. It is what the leader of the servers knew at some instant of the call; the
// data of each member are what it had said then, or later. It blocks until the servers answer. It makes nothing.
//
// It costs two requests, and one for each member; the first use of an object costs two more.
func (g *Group) Members(ctx context.Context) (all []Member, err error) {
	err = g.checked().at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		all = nil
		if there, err := g.exists(ctx, e); err != nil || !there {
			return err
		}
		names, err := e.SyncedChildren(ctx, g.members())
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		all, err = g.read(ctx, e, names)
		return err
	})
	return all, errs.Wrap("members", g.at.Path, err)
}

// exists reports whether the group was made. It does not ask the servers again when it was.
func (g *Group) exists(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	if g.made.Load() {
		return true, nil
	}
	_, there, err := g.terms.Ask(ctx, e)
	if there && err == nil {
		g.made.Store(true)
	}
	return there, err
}

// read reads the data of members. Those that have left meanwhile are left out.
func (g *Group) read(ctx context.Context, e *zkconn.Epoch, names []string) ([]Member, error) {
	var paths, ids []string
	for _, name := range names {
		if id, ok := idOf(name); ok {
			paths, ids = append(paths, g.members()+"/"+name), append(ids, id)
		}
	}
	all := make([]Member, 0, len(ids))
	err := e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		all = append(all, Member{ids[i], c.Data})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, byID)
	return all, nil
}

func byID(a, b Member) int { return strings.Compare(a.ID, b.ID) }

// View is the group after a change. All lists are sorted by ID.
type View struct {
	// Members are all members.
	Members []Member
	// Joined, Left and Updated are what has changed since the view before. A member that has left and joined again, for
	// example in its next session, may be in Left and in Joined. Those who left are told with their last data.
	Joined, Left, Updated []Member
}

// Watch is a loop over the states of the group: the present one, with all members in Joined, and then one after every
// change. Changes that follow each other quickly may be told as one, and those that happened while there was no connection are.
// What is told adds up to what is on the servers, through disconnects and lost sessions. The loop waits for the next change
// until ctx ends; then, or if the session is closed or the path is that of another type, the last error is told. The body may use the group, and
// keep the views.
//
// At the beginning it costs a request for each member, and up to five. A member that joins or changes its data costs a request;
// one that leaves costs none. After a lost connection each member costs one. The servers hold one watch for it, if they
// are of version 3.6 or later and the connection is ours. Otherwise they hold two watches for each member, and each change also costs
// a listing.
func (g *Group) Watch(ctx context.Context) iter.Seq2[View, error] {
	return func(yield func(View, error) bool) {
		err := g.checked().at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
			_, err := g.exists(ctx, e)
			return err
		})
		if err != nil {
			yield(View{}, errs.Wrap("watch", g.at.Path, err))
			return
		}
		c := newCensus()
		for ev, err := range subtree.Tree(ctx, g.at, g.members()) {
			if err != nil {
				yield(View{}, errs.Wrap("watch", g.at.Path, err))
				return
			}
			if v, ok := c.heard(ev, g.members()+"/"); ok && !yield(v, nil) {
				return
			}
		}
	}
}

// census makes views of events.
type census struct {
	all   map[string][]byte
	batch bool // more events belong to the next view
	first bool
	next  View
}

func newCensus() *census { return &census{all: map[string][]byte{}, batch: true, first: true} }

// heard takes an event, and returns a view if one is complete.
func (c *census) heard(ev subtree.Event, dir string) (View, bool) {
	switch ev.Kind {
	case subtree.Interrupted:
		c.batch = true
	case subtree.Initialized, subtree.Resumed:
		c.batch = false
	default:
		name, ok := strings.CutPrefix(ev.Path, dir)
		if !ok || strings.Contains(name, "/") {
			return View{}, false
		}
		if id, ok := idOf(name); ok {
			c.changed(ev.Kind, id, ev.Data)
		}
	}
	nothing := len(c.next.Joined)+len(c.next.Left)+len(c.next.Updated) == 0
	if c.batch || nothing && !c.first {
		return View{}, false
	}
	v := c.next
	c.next, c.first = View{}, false
	v.Members = make([]Member, 0, len(c.all))
	for id, data := range c.all {
		v.Members = append(v.Members, Member{id, data})
	}
	for _, l := range [][]Member{v.Members, v.Joined, v.Left, v.Updated} {
		slices.SortFunc(l, byID)
	}
	return v, true
}

// changed notes what an event says of a member. Several changes are one in the view: who came and went is not told, and who came
// or changed is told with its last data.
func (c *census) changed(kind subtree.Kind, id string, data []byte) {
	joined := drop(&c.next.Joined, id)
	drop(&c.next.Updated, id)
	switch {
	case kind == subtree.Deleted && !joined:
		c.next.Left = append(c.next.Left, Member{id, c.all[id]})
	case kind == subtree.Created, kind == subtree.Changed && joined:
		c.next.Joined = append(c.next.Joined, Member{id, data})
	case kind == subtree.Changed:
		c.next.Updated = append(c.next.Updated, Member{id, data})
	}
	if kind == subtree.Deleted {
		delete(c.all, id)
		return
	}
	c.all[id] = data
}

// drop takes a member out, and reports whether it was there.
func drop(ms *[]Member, id string) bool {
	n := len(*ms)
	*ms = slices.DeleteFunc(*ms, func(m Member) bool { return m.ID == id })
	return len(*ms) < n
}

// create is the operation that makes a node.
func (g *Group) create(path string, data []byte, flags int32) any {
	return &zk.CreateRequest{Path: path, Data: data, Acl: g.at.ACL(), Flags: flags}
}

// known makes the group if nobody has.
func (g *Group) known(ctx context.Context, e *zkconn.Epoch) error {
	_, err := g.terms.Known(ctx, e)
	if err == nil {
		g.made.Store(true)
	}
	return err
}
