package session

import (
	"context"
	"fmt"
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

// Access is what a primitive is given by its constructor: a session, the path, the options.
type Access struct {
	Session  *Session
	Path     string // as the session's user knows it
	Settings Settings
	misuse   error // of the constructor, reported by every call
}

// NewAccess checks the arguments of a constructor. The first call reports an error.
func NewAccess[O Option](s *Session, path string, opts []O) *Access {
	a := &Access{Session: s, Path: path}
	if s == nil {
		a.Session, a.misuse = None(), errs.ErrNoSession
		return a
	}
	a.Settings, a.misuse = lockSettings(s.settings, Options(opts))
	if len(a.Settings.ACL) == 0 {
		a.Settings.ACL = zk.WorldACL(zk.PermAll)
	}
	if a.misuse == nil {
		a.misuse = node.ValidatePath(path)
	}
	return a
}

// OfHolds are the options of holds.
var OfHolds = []string{"WithHandover", "WithLinger", "WithMaxHold"}

// Without makes every call report these options, by their names, because they mean nothing to the primitive.
func (a *Access) Without(names ...string) *Access {
	for _, u := range a.Settings.used {
		if slices.Contains(names, u.name) {
			a.Refuse(fmt.Errorf("%w: %s does not belong to this constructor", errs.ErrMisuse, u.name))
		}
	}
	return a
}

// Content is the data of a node that is made now, with the other fields of c.
func (a *Access) Content(c node.Content) node.Content {
	c.Owner, c.Since = node.Owner{Host: a.Session.host, PID: processID, Name: a.Settings.Name}, time.Now()
	return c
}

// Queue is the queue in the directory sub below the path, "" for the path itself.
func (a *Access) Queue(sub string, kind queue.Kind) *queue.Queue {
	return queue.New(queue.Queue{
		Client: a.Session.client, Logger: a.Session.logger,
		Dir: a.Session.Full(a.Path) + sub, Shown: a.Path + sub,
		Kind: kind, ACL: a.Settings.ACL,
		Data: func() []byte { return a.Content(node.Content{}).Encode() },
	})
}

// Misuse is an error of the constructor, which every call reports: no session, a malformed path, a bad option.
func (a *Access) Misuse() error { return a.misuse }

// Refuse makes every call report err, unless there is another error of the constructor.
func (a *Access) Refuse(err error) {
	if a.misuse == nil {
		a.misuse = err
	}
}

// Client is the session's connection.
func (a *Access) Client() *zkconn.Client { return a.Session.client }

// Full is the path on the servers of one of the session's paths, Local the reverse.
func (a *Access) Full(path string) string  { return a.Session.Full(path) }
func (a *Access) Local(path string) string { return a.Session.Local(path) }

// In runs f in the present ZooKeeper session, and again in the next one if that ends (f returns
// zkconn.ErrOver). f's context ends with ctx and when the session closes. Errors are those for the
// caller, but not wrapped. Close does not wait for f, because f may call a function of the user, which may close the session.
func (a *Access) In(ctx context.Context, f func(context.Context, *zkconn.Epoch) error) error {
	if a.misuse != nil {
		return a.misuse
	}
	if ctx.Err() != nil {
		return errs.OfContext(ctx)
	}
	return a.Session.inUnjoined(ctx, f)
}

// Spawn runs f in a goroutine that the session's Close joins, or reports false after Close has begun; Closed
// is closed then. After Begin Close waits for End. That is for a goroutine that also runs functions of the user, for which
// Close must not wait.
func (a *Access) Spawn(f func()) bool     { return a.Session.Spawn(f) }
func (a *Access) Begin() bool             { return a.Session.begin() }
func (a *Access) End()                    { a.Session.work.Done() }
func (a *Access) Closed() <-chan struct{} { return a.Session.ctx.Done() }

// ACL is the access control list of the primitive's nodes.
func (a *Access) ACL() []zk.ACL { return a.Settings.ACL }

// Owner is the data of a node, with its owner.
func (a *Access) Owner() []byte { return a.Content(node.Content{}).Encode() }
