package session

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

var processID = os.Getpid()

// Access is what the constructor of a primitive gives to it: a session, the path, and the options.
type Access struct {
	*Session
	Package  string // whose calls it is for: errors begin with it
	Path     string // as the session's user knows it
	Settings Settings
	kind     string // see Of
	views    bool   // it makes nothing at the path: see NewViewAccess
}

// NewAccess checks the arguments of a constructor of the package pkg. It returns no
// error: each call of the primitive reports what is wrong (Misuse).
func NewAccess[O Option](pkg string, s *Session, path string, opts []O) *Access {
	return newAccess(pkg, s, path, Options[Option](opts), node.ValidatePath, func(u use) bool { return u.lock })
}

// NewViewAccess is NewAccess for what only looks at nodes of any program: the path may be the root.
func NewViewAccess[O Option](pkg string, s *Session, path string, opts []O) *Access {
	a := newAccess(pkg, s, path, Options[Option](opts), node.ValidateNode, func(u use) bool { return u.lock })
	a.views = true
	return a
}

// NewValueAccess is NewAccess for what keeps values of the user: it takes the option for their codec, and of those of holds only
// these.
func NewValueAccess[O Option](pkg string, s *Session, path string, opts []O, holds ...string) *Access {
	return newAccess(pkg, s, path, Options[Option](opts), node.ValidatePath, func(u use) bool {
		return u.values || u.lock && (!slices.Contains(OfHolds, u.name) || slices.Contains(holds, u.name))
	})
}

func newAccess(pkg string, s *Session, path string, opts []Option, valid func(path string) error, suits func(use) bool) *Access {
	a := &Access{Session: s, Package: pkg, Path: path}
	if !s.Opened() {
		a.Session, a.Settings.bad = None(), errs.ErrNoSession
		return a
	}
	a.Settings = lockSettings(s.settings, opts, suits)
	if len(a.Settings.ACL) == 0 {
		a.Settings.ACL = zk.WorldACL(zk.PermAll)
	}
	s.client.KeepIdentityOut(a.Settings.ACL)
	a.Refuse(valid(path))
	return a
}

// NewDelayed is NewAccess for a primitive that knows zksync.WithLockDelay.
func NewDelayed[O Option](pkg string, s *Session, path string, opts []O) *Access {
	own, rest := Own[LockDelay](opts)
	a := NewAccess(pkg, s, path, rest)
	for _, o := range own {
		if o.D < time.Millisecond {
			a.Settings.Misuse("a lock delay of %v; give at least 1ms", o.D)
		}
		a.Settings.Delay = o.D
	}
	return a
}

// OfHolds are the options that have a meaning for holds only.
var OfHolds = []string{"WithHandover", "WithLinger", "WithMaxHold", "WithAsyncUnlock", "WithDeadlockDetection"}

// Without makes every call of the primitive report a misuse
// if one of these options was given: they mean nothing to it.
func (a *Access) Without(names ...string) *Access {
	a.Settings.refuse(func(u use) bool { return slices.Contains(names, u.name) })
	return a
}

// Of says that the path is that of a type, by its name in package layout, which leaves the data of the path alone. Then Run
// returns a misuse if the nodes there are those of another type.
func (a *Access) Of(kind string) *Access {
	a.kind = kind
	return a
}

// Look is the look of a type for which Run does not look: see Of.
func (a *Access) Look(ctx context.Context, e *zkconn.Epoch, kind string) error {
	return a.looks.Beside(ctx, e, kind, a.Full(a.Path))
}

// Content is the data of a node that is made now. It fills in
// the owner and the time; the other fields are those of c.
func (a *Access) Content(c node.Content) node.Content {
	c.Owner, c.Since = node.Owner{Host: a.host, PID: processID, Name: a.Settings.Name}, time.Now()
	return c
}

// Queue is the queue in the directory sub below the path; "" is the path itself.
func (a *Access) Queue(sub string, kind queue.Kind) *queue.Queue {
	q := queue.Queue{
		Client: a.client, Log: a.log,
		Dir: a.Full(a.Path) + sub, Shown: a.Path + sub,
		Kind: kind, ACL: a.Settings.ACL,
		Data: a.entryData, Crowds: &a.crowds, Delay: a.Settings.Delay, Begins: a.lookIfOpen,
	}
	if sub == "" {
		q.Type, q.Looks = queue.TypeOf(kind), &a.looks
	}
	return queue.New(q)
}

// Apply makes a change of nodes, whose writers are in dir, at most once: see [writers.Writers.Apply].
func (a *Access) Apply(ctx context.Context, e *zkconn.Epoch, dir string, ops ...any) ([]zk.MultiResponse, error) {
	return a.writers.Apply(ctx, e, 0, dir, a.Settings.ACL, ops...)
}

// ApplyOn is Apply on the connection of this number only.
func (a *Access) ApplyOn(ctx context.Context, e *zkconn.Epoch, link int64, dir string, ops ...any) error {
	_, err := a.writers.Apply(ctx, e, link, dir, a.Settings.ACL, ops...)
	return err
}

// Misuse is an error of the constructor, which every call reports: no session, a malformed path, a bad option.
func (a *Access) Misuse() error { return a.Settings.bad }

// Refuse makes every call report err, unless there is another error of the constructor.
func (a *Access) Refuse(err error) {
	a.Settings.bad = cmp.Or(a.Settings.bad, err)
}

// ACL is the access control list of the primitive's nodes.
func (a *Access) ACL() []zk.ACL { return a.Settings.ACL }

// Under is what an entry says that its owner held: said, or what the session says for all its entries.
func (a *Access) Under(said string) string { return cmp.Or(said, a.Settings.Under) }

// Said is the content of a node for an entry that says this.
func (a *Access) Said(s queue.Said) node.Content {
	return node.Content{Under: a.Under(s.Under), Trace: s.Trace}
}

func (a *Access) entryData(s queue.Said) []byte { return a.Content(a.Said(s)).Encode() }

// Owner is the data of a node that tells only its owner.
func (a *Access) Owner() []byte { return a.Content(node.Content{}).Encode() }
