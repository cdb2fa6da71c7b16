package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/layout"
	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// state is the State of the type at a path. The numbers in the constructors do not matter: the State shows those on the servers.
func state(ctx context.Context, s *zksync.Session, kind, at string) (any, error) {
	switch kind {
	case layout.Mutex, layout.RWMutex, layout.Election:
		return zksync.NewMutex(s, at).State(ctx)
	case layout.Semaphore:
		return zksemaphore.NewWeighted(s, at, 1).State(ctx)
	case layout.Cond:
		return zkcond.New(zksync.NewMutex(s, "/lock-of-"+at[1:]), at).State(ctx)
	case layout.Once:
		return zkonce.New(s, at).State(ctx)
	case layout.Promise:
		return zkonce.NewPromise[any](s, at).State(ctx)
	case layout.Barrier:
		return zkbarrier.NewBarrier(s, at, 1).State(ctx)
	case layout.DoubleBarrier:
		return zkbarrier.NewDoubleBarrier(s, at, 1).State(ctx)
	case layout.Latch:
		return zklatch.New(s, at, 1).State(ctx)
	case layout.Gate:
		return zklatch.NewGate(s, at).State(ctx)
	case layout.Phaser:
		return zkphaser.New(s, at).State(ctx)
	case layout.WaitGroup:
		return zkwaitgroup.New(s, at).State(ctx)
	case layout.Flight:
		return zkflight.New[any](s, at).State(ctx)
	case layout.FlightKey:
		key, _ := layout.Unescape(path.Base(at)) // a long key cannot be told from its name
		return zkflight.New[any](s, path.Dir(at)).KeyState(ctx, key)
	case layout.Int64:
		return zkatomic.NewInt64(s, at).State(ctx)
	case layout.Sequence:
		return zkatomic.NewSequence(s, at).State(ctx)
	case layout.Value:
		return zkatomic.NewValue[any](s, at).State(ctx)
	case layout.Slots:
		return zkatomic.NewSlots(s, at, 1).State(ctx)
	case layout.Map:
		return zkmap.New[string, any](s, at).State(ctx)
	case layout.Set:
		return zkmap.NewSet[string](s, at).State(ctx)
	case layout.Queue:
		return zkqueue.New[any](s, at).State(ctx)
	case layout.Group:
		return zkgroup.New(s, at).State(ctx)
	case layout.Cron:
		return zkcron.New(s, at).State(ctx)
	case layout.Rate:
		return zkrate.New(s, at, 0, 0).State(ctx)
	case layout.Durable:
		return zkdurable.NewMutex(s, at).State(ctx)
	case layout.Shards:
		return zkshard.StateOf(ctx, s)
	}
	return nil, zksync.ErrMisuse
}

// Describe returns the kind and the state of n.
func (l *Look) Describe(ctx context.Context, n *reads.Node) (*Object, error) {
	kind := layout.Guess(n.Data, n.Children)
	o, err := l.of(ctx, n, kind)
	if errors.Is(err, zksync.ErrMisuse) { // it only looked like that
		kind = ""
		o, err = l.plain(ctx, n)
	}
	if errors.Is(err, zk.ErrNoAuth) { // of a part of it, so nothing is known
		o, err = &Object{Path: n.Path, Kind: cmp.Or(layout.Word(kind), "directory"), State: "denied", Detail: Denied, Entries: []Row{}}, nil
	}
	if err != nil {
		return nil, err
	}
	o.Queue = o.Queue || slices.Contains([]string{layout.Mutex, layout.RWMutex, layout.Election, layout.Semaphore}, kind)
	o.Changes = n.Stat.Cversion
	if kind == layout.Semaphore {
		if st, there, err := l.Epoch.Exists(ctx, l.Session.Full(n.Path)+"/queue"); err == nil && there {
			o.Changes = st.Cversion
		}
	}
	for _, child := range n.Children {
		if o.Kind != "system" && (!layout.IsPart(kind, child) || kind == layout.Once && o.State != "done") { // it may be a directory
			o.Rest = append(o.Rest, child)
		}
	}
	return o, nil
}

// Object describes what is at path; nil if there is no node.
func (l *Look) Object(ctx context.Context, path string) (*Object, error) {
	n, err := l.At(ctx, path)
	if n == nil || err != nil {
		return nil, err
	}
	return l.Describe(ctx, n)
}

// of is the object of a type, which is its State.
func (l *Look) of(ctx context.Context, n *reads.Node, kind string) (*Object, error) {
	l.Known = n
	st, err := state(ctx, l.Of, kind, n.Path)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	o := new(Object)
	if err := json.Unmarshal(data, o); err != nil || o.Path == n.Path {
		return o, err
	}
	return nil, zksync.ErrMisuse // the name of a long key does not show the key
}

// Denied is the detail of a node that we may not read.
const Denied = "not readable with these credentials: see --auth"

// plain describes what is no recipe.
func (l *Look) plain(ctx context.Context, n *reads.Node) (*Object, error) {
	o := &Object{Path: n.Path, Kind: "node", State: "node", Entries: []Row{}}
	owner := n.Row("", "")
	switch below := len(n.Children) > 0; {
	case n.Path == "/zookeeper" || strings.HasPrefix(n.Path, "/zookeeper/"):
		o.Kind, o.State, o.Detail = "system", "system", "the servers' own"
	case n.Denied && below:
		o.Kind, o.State, o.Detail = "directory", "denied", Denied
	case n.Denied:
		o.State, o.Detail = "denied", Denied
	case below:
		return l.directory(ctx, n, o)
	case n.Stat.EphemeralOwner != 0:
		o.State, o.Detail = "ephemeral", wording.Plural(int64(n.Size), "byte")
		if owner.Owner.Host != "" || owner.Owner.PID != 0 {
			o.Detail += " of " + wording.Who(node.Owner(owner.Owner), owner.Session)
		}
		o.Detail += fmt.Sprintf(", of session 0x%x", uint64(n.Stat.EphemeralOwner))
	case n.Size > 0:
		o.Detail = wording.Plural(int64(n.Size), "byte") + " of data, nothing below"
	default:
		// Unused locks, elections, open gates and others look the same: an empty directory.
		o.Kind, o.State, o.Queue = "empty", "empty", true
		o.Detail = "empty: a free lock or election, an open gate, or anything else"
	}
	return o, nil
}

// maxKeys is how many children are read at most to tell a flight from a directory.
const maxKeys = 64

// directory describes a directory, which is a flight if its children are keys.
func (l *Look) directory(ctx context.Context, n *reads.Node, o *Object) (*Object, error) {
	keys, unused := 0, 0
	if len(n.Data) == 0 && len(n.Children) <= maxKeys {
		err := l.Each(ctx, n, n.Children, func(c *reads.Node) error {
			switch {
			case layout.MayBeKey(c.Data, c.Children):
				keys++
			case len(c.Data) == 0 && len(c.Children) == 0 && c.Stat.EphemeralOwner == 0:
				unused++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if keys > 0 && keys+unused == len(n.Children) && n.Path != "/" {
		return l.of(ctx, n, layout.Flight)
	}
	o.Kind, o.State, o.Detail = "directory", "directory", wording.Plural(int64(len(n.Children)), "node")+" below"
	return o, nil
}
