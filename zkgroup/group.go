package zkgroup

import (
	"context"
	"errors"
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
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Group is a set of processes that know of each other.
type Group struct {
	at    *session.Access
	opts  []zksync.Option // of the locks of items
	terms record.Terms[terms]
	made  atomic.Bool // the group is known to exist
}

// terms are the data of the group's node.
type terms struct {
	Hash string `json:"hash"`
}

// New names a group. Its options are WithACL and WithName.
func New(s *zksync.Session, path string, opts ...zksync.Option) *Group {
	at := session.NewAccess("zkgroup", (*session.Session)(s), path, opts).Without(session.OfHolds...)
	g := &Group{at: at, opts: opts}
	base := strings.TrimSuffix(at.Full(path), "/") + "/" + layout.Group
	g.terms = record.Terms[terms]{
		Base: base, ACL: at.ACL(), Type: layout.Group, Keys: []string{"hash"},
		First: func() (terms, []string) {
			return terms{rounds.HashName}, []string{base + "/members", base + "/writers", rounds.Nodes{Base: base}.Working(), base + "/items"}
		},
		Check: func(t terms) error {
			if t.Hash != rounds.HashName {
				return errs.Misuse("the group divides items by the hash %s, this version by %s", errs.Quote(t.Hash), rounds.HashName)
			}
			return nil
		},
	}
	return g
}

// checked is g, which New has made. Of a zero or nil value it panics.
func (g *Group) checked() *Group {
	if g == nil || g.at == nil {
		panic(errs.Unmade("zkgroup", "a Group", "New"))
	}
	return g
}

func (g *Group) members() string         { return g.terms.Base + "/members" }
func (g *Group) writers() string         { return g.terms.Base + "/writers" }
func (g *Group) member(id string) string { return g.members() + "/" + layout.Escape(id) }

// rounds is where the rounds of Assign are.
func (g *Group) rounds() rounds.Nodes {
	return rounds.Nodes{Base: g.terms.Base, Create: g.create, Apply: g.apply}
}

// create is the operation that makes a node.
func (g *Group) create(path string, data []byte, flags int32) any {
	return &zk.CreateRequest{Path: path, Data: data, Acl: g.at.ACL(), Flags: flags}
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

var errRemoved = errs.Broken("the group", "another program has removed nodes of it; remove the rest, too, and join again")

// unlessRemoved is errRemoved if the nodes are gone that every change needs.
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

// know makes the group if it does not exist.
func (g *Group) know(ctx context.Context, e *zkconn.Epoch) error {
	_, err := g.terms.Known(ctx, e)
	if err == nil {
		g.made.Store(true)
	}
	return err
}

// exists reports whether the group exists, and makes nothing. It does not ask the servers again.
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

// Member is a process of a group.
type Member struct {
	// ID names the member. No two living members of a group have the same one. Escaped as in a URL's path it
	// has at most 200 bytes.
	ID string
	// Data describe the member. All watchers keep them in memory.
	Data []byte
}

func byID(a, b Member) int { return strings.Compare(a.ID, b.ID) }

// Members lists the members, sorted by their IDs. The data of a member may be newer than the list.
func (g *Group) Members(ctx context.Context) (all []Member, err error) {
	err = g.checked().at.Run(ctx, "members", func(ctx context.Context, e *zkconn.Epoch) error {
		all = nil
		if there, err := g.exists(ctx, e); err != nil || !there {
			return err
		}
		names, err := e.SyncedChildren(ctx, g.members())
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		all, err = g.read(ctx, e, names)
		return err
	})
	return all, err
}

// read reads the data of members. It leaves out those that have left meanwhile.
func (g *Group) read(ctx context.Context, e *zkconn.Epoch, names []string) (all []Member, err error) {
	var paths, ids []string
	for _, name := range names {
		if id, ok := layout.Unescape(name); ok {
			paths, ids = append(paths, g.members()+"/"+name), append(ids, id)
		}
	}
	err = e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		all = append(all, Member{ids[i], c.Data})
		return nil
	})
	slices.SortFunc(all, byID)
	return all, err
}
