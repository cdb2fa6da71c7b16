package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Spec says what to make.
type Spec struct {
	Dir   string                   // on the servers; made when it is missing
	Name  func(uuid string) string // of the node up to its sequence number; begins with [Prefix] of the uuid
	Data  func() []byte            // of the node, made anew for every attempt
	ACL   []zk.ACL
	Flags int32 // of the create

	// Before returns what else the transaction does, before the create: a deletion,
	// or checks. It is asked for every attempt; nil means nothing.
	Before func() []any
	// Tried is told after every attempt if its transaction is known to have been
	// applied. It may be nil.
	Tried func(applied bool)

	// KeepDuplicates says that a node stays if a lost request makes it after the search for it. Whoever makes the
	// nodes knows all nodes of an attempt by their names, and would take the removal of one for a departure.
	KeepDuplicates bool

	// UUID is that of every attempt; if it is empty, each attempt has its own. With it a node without a sequence number is made
	// once, however many requests for it are applied. It needs KeepDuplicates. Whoever removes the node after several attempts
	// must say that one of them may yet make it: [zkconn.Epoch.AmbiguousCreate].
	UUID string

	// Plain is set once the servers refused to let us write the directory's data.
	// Then the transaction is without that, and the Stat is not known. If it is nil, that refusal is an error.
	Plain *atomic.Bool
}

// Node is a node that was made.
type Node struct {
	Name  string // without its directory
	Path  string
	UUID  string
	Czxid int64
	Dir   *zk.Stat // of the directory, as of the moment after the create; nil if the answer did not tell
	Epoch *zkconn.Epoch
}

// Prefix begins the name of every node that the attempt with this uuid makes.
func Prefix(uuid string) string { return "_c_" + uuid }

// ErrGone means that the node that was made is not there, or is not of this session.
var ErrGone = errors.New("own node was deleted by somebody else")

// Refused is a transaction that was not applied because of what Before asked for.
type Refused struct {
	Index int // in what Before returned
	Err   error
}

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Grace is how long a call whose context has ended waits for the removal of its
// node: with a healthy connection nothing is left when it returns, and its
// deadline is not overrun by more.
const Grace = 50 * time.Millisecond

// errAgain means that nothing was made and trying again makes sense.
var errAgain = errors.New("try again")

// Make makes the node. It waits for a connection, and tries again after each that
// was lost, until ctx ends or the epoch is over (zkconn.ErrOver). After an error
// nothing is left but what the reaper removes.
func Make(ctx context.Context, e *zkconn.Epoch, s Spec) (*Node, error) {
	for pace := (Pace{Free: 1}); ; { // mostly the connection was lost, and Await will wait
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		n, err := s.try(ctx, e)
		if !errors.Is(err, errAgain) {
			return n, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, err
		}
	}
}

// try makes one attempt.
func (s *Spec) try(ctx context.Context, e *zkconn.Epoch) (*Node, error) {
	uuid := cmp.Or(s.UUID, NewUUID())
	var ops []any
	if s.Before != nil {
		ops = s.Before()
	}
	at := len(ops)
	ops = append(ops, &zk.CreateRequest{
		Path: s.Dir + "/" + s.Name(uuid), Data: s.Data(), Acl: s.ACL, Flags: s.Flags,
	})
	if s.Plain == nil || !s.Plain.Load() {
		ops = append(ops, &zk.SetDataRequest{Path: s.Dir, Version: -1})
	}
	call := e.StartMulti(ops...)
	_, ended := call.Wait(ctx, e)
	if !call.Answered() {
		s.abandon(e, uuid, call, at) // ctx or the epoch ended first
		s.tried(false)
		return nil, ended
	}
	res, err := call.Result() // also if ctx ended at the very same time
	s.tried(err == nil)
	if err == nil {
		return s.made(ctx, e, uuid, res[at:])
	}
	if errors.Is(err, zkconn.ErrNotSent) {
		return nil, errAgain
	}
	// Nobody knows whether the node exists. Look for it while there is a connection. If we do not
	// find it, the reaper removes whatever is there, or will be.
	if zkconn.Unknown(err) {
		return s.find(ctx, e, uuid)
	}
	refused := &zkconn.TxnError{Index: -1, Err: err}
	errors.As(err, &refused)
	return s.refused(ctx, e, refused, ops[:at], uuid)
}

func (s *Spec) tried(applied bool) {
	if s.Tried != nil {
		s.Tried(applied)
	}
}

// made reads the answer to the transaction. The directory's Stat is that of the
// very moment after our create, because a transaction has one zxid:
//   - NumChildren counts our node and everybody who came before it and is still there;
//   - Mzxid is the zxid of the transaction, so it is our node's czxid.
func (s *Spec) made(ctx context.Context, e *zkconn.Epoch, uuid string, res []zk.MultiResponse) (*Node, error) {
	name := path.Base(res[0].String)
	if !strings.HasPrefix(name, s.Name(uuid)) {
		Abandon(e, s.Dir, uuid)
		return nil, fmt.Errorf("the servers made node %q, which is not what was asked for", res[0].String)
	}
	n := &Node{Name: name, Path: s.Dir + "/" + name, UUID: uuid, Epoch: e}
	if len(res) > 1 && res[1].Stat != nil {
		n.Dir, n.Czxid = res[1].Stat, res[1].Stat.Mzxid
		if e.Ordered() {
			return n, nil
		}
	}
	// The answer does not tell the czxid, or whether the create ran in the session for which it was meant.
	if err := s.stat(ctx, n); err != nil {
		n.reap()
		return nil, err
	}
	return n, nil
}

// reap gives the reaper a node that turned out to be useless, and its duplicate, if
// a request that was applied twice made one.
func (n *Node) reap() {
	n.Epoch.Reap(zkconn.Orphan{Dir: path.Dir(n.Path), Prefix: Prefix(n.UUID)})
	Settle(n.Epoch, n.Epoch.Reap(zkconn.Orphan{Dir: path.Dir(n.Path), Node: n.Path}), Grace)
}

// stat asks for the node's czxid where no transaction told it, and checks that an
// ephemeral node belongs to this session.
func (s *Spec) stat(ctx context.Context, n *Node) error {
	st, there, err := n.Epoch.Exists(ctx, n.Path)
	if err != nil {
		return err
	}
	if !there || s.Flags&zk.FlagEphemeral != 0 && st.EphemeralOwner != n.Epoch.ID() {
		return ErrGone
	}
	n.Czxid = st.Czxid
	return nil
}

// refused handles a transaction of which nothing was applied. before is what stood
// in it before the create.
func (s *Spec) refused(ctx context.Context, e *zkconn.Epoch, t *zkconn.TxnError, before []any, uuid string) (*Node, error) {
	switch {
	case t.Index >= 0 && t.Index < len(before):
		// What was to be deleted is gone already, or what was checked has changed. That
		// may be because this very request was applied before (a repeated request), so
		// look before trying again.
		n, err := s.find(ctx, e, uuid)
		if _, deletion := before[t.Index].(*zk.DeleteRequest); !deletion && errors.Is(err, errAgain) {
			return nil, &Refused{t.Index, t.Err}
		}
		return n, err
	case errors.Is(t, zk.ErrNoNode):
		if err := MakeDir(ctx, e, s.Dir, s.ACL); err != nil {
			return nil, err
		}
		return nil, errAgain
	case errors.Is(t, zk.ErrNoAuth) && t.Index > len(before) && s.Plain != nil: // no request has this operation from now on
		s.Plain.Store(true)
		return nil, errAgain
	case errors.Is(t, zk.ErrSessionExpired):
		return nil, zkconn.ErrOver
	case errors.Is(t, zk.ErrNodeExists) && s.Flags&zk.FlagSequence != 0:
		// It can only be ours: nobody else has the uuid. This very request was applied before, and at the end of
		// the sequence numbers it got the same number.
		return s.find(ctx, e, uuid)
	}
	return nil, t.Err
}
