package node

import (
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

// Spec says what node to make, and how.
type Spec struct {
	Dir   string                   // on the servers; made when it is missing
	Base  string                   // a node above Dir with data of its own, which is not made; "" for none. If it is missing, the error is a *Refused
	Name  func(uuid string) string // the name up to its sequence number; it begins with [Prefix] of the uuid
	Data  func() []byte            // the data; called for every attempt
	ACL   []zk.ACL
	Flags int32 // of the create

	// Before returns what else the transaction does before the create: a
	// deletion, or checks. It is called for every attempt; nil means nothing.
	Before func() []any
	// Tried is called after every attempt. applied says that the
	// transaction is known to have been applied. Tried may be nil.
	Tried func(applied bool)

	// KeepDuplicates says that a node stays if a lost request makes it after the search for it. It is for a maker
	// that knows all nodes of an attempt by their names, and would take the removal of one of them for a departure.
	KeepDuplicates bool

	// UUID is the uuid of every attempt; if it is empty, each attempt has its own. With
	// it, a node without a sequence number is made once, however many requests for it are
	// applied. It needs KeepDuplicates. A maker that removes the node after several
	// attempts must say that one of them may yet make it: [zkconn.Epoch.AmbiguousCreate].
	UUID string

	// Sealed reports whether the node should be sealed: see the function of that name. found is what a look has just read of
	// the directory; nil if there was none. Without an identity of the session ([zkconn.Epoch.Identity]) the node is not
	// sealed; its uuid shows which it is. A nil Sealed seals no node. With a UUID of the caller's it must be nil.
	Sealed func(found *zkconn.Content) bool

	// Plain is set once the servers have refused to let us write the directory's data. From then on the
	// transaction does not do that, and the Stat is not known. If Plain is nil, that refusal is an error.
	Plain *atomic.Bool

	// Type is the name in package layout of the object whose path Dir is, if it is the path of one. Then nothing is written to Dir
	// before Looks has shown that it is not that of another type.
	Type   string
	Looks  *Looks
	Refuse func(children []string) error // see [Looks.Below]
}

// Node is a node that was made.
type Node struct {
	Name  string // without its directory
	Path  string
	UUID  string
	Czxid int64
	Dir   *zk.Stat // of the directory, right after the create; nil if the answer did not tell
	Epoch *zkconn.Epoch

	// Before is what a look has read of the directory before the create; nil if none was needed.
	Before *zkconn.Content
}

// Prefix is what the name of every node begins with that the attempt with this uuid makes.
func Prefix(uuid string) string { return "_c_" + uuid }

// ErrGone means that the node that was made is not there any more, or belongs to another session.
var ErrGone = errors.New("own node was deleted by somebody else")

// Refused is the error of a transaction that was not applied because an operation of Before failed.
type Refused struct {
	Index int // of the operation, in what Before returned
	Err   error
}

func (r *Refused) Error() string { return r.Err.Error() }
func (r *Refused) Unwrap() error { return r.Err }

// Grace is how long a call whose context has ended waits for the removal of
// its node. On a healthy connection that is enough, so nothing is left when
// the call returns. And the call overruns its deadline by no more than that.
const Grace = 50 * time.Millisecond

// errNoDir is ErrAgain, once the directory is there.
var errNoDir = fmt.Errorf("%w: the directory is missing", ErrAgain)

// Make makes the node, in the loop of [Insist]. A lost request is not repeated but looked for, because each attempt has a
// name of its own. After an error the reaper removes whatever was made.
func Make(ctx context.Context, e *zkconn.Epoch, s Spec) (n *Node, err error) {
	made := false
	r := Insist(ctx, e)
	for r.Next() {
		if made = errors.Is(err, errNoDir); made {
			// No pause comes between this and the attempt: the servers may remove the directory, which is empty.
			made, err = MakeDirBelow(ctx, e, s.Base, s.Dir, s.ACL)
			if s.Base != "" && errors.Is(err, zk.ErrNoNode) {
				err = &Refused{Err: err}
			}
			if err != nil {
				return nil, err
			}
		}
		n, err = s.try(ctx, e, made)
		r.Err = err
	}
	return n, r.Err
}

// look returns the version of the directory at which the transaction may write to it. made says that we have just made it.
func (s *Spec) look(ctx context.Context, e *zkconn.Epoch, made bool) (version int32, found *zkconn.Content, err error) {
	if s.Type == "" {
		return -1, nil, nil
	}
	if made {
		return 0, nil, nil
	}
	version, found, err = s.Looks.Below(ctx, e, s.Type, s.Dir, s.Refuse)
	if errors.Is(err, zk.ErrNoNode) {
		err = errNoDir
	}
	return version, found, err
}

// try makes one attempt. made says that we have just made the directory.
func (s *Spec) try(ctx context.Context, e *zkconn.Epoch, made bool) (n *Node, err error) {
	version, found, err := s.look(ctx, e, made)
	if err != nil {
		return nil, err
	}
	uuid, acl := s.UUID, s.ACL
	if own, ok := s.identity(e, found); ok {
		uuid, acl = newUUID(sealedVersion), seal(s.ACL, own)
	} else if uuid == "" {
		uuid = NewUUID()
	}
	name := s.Name(uuid)
	var ops []any
	if s.Before != nil {
		ops = s.Before()
	}
	// at is the index of the create; what follows it in the answer is read by answer.
	at := len(ops)
	ops = append(ops, &zk.CreateRequest{
		Path: s.Dir + "/" + name, Data: s.Data(), Acl: acl, Flags: s.Flags,
	})
	if s.Plain == nil || !s.Plain.Load() {
		ops = append(ops, &zk.SetDataRequest{Path: s.Dir, Data: []byte(name), Version: version})
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
	switch refused := new(zkconn.TxnError); {
	case err == nil:
		if s.Type != "" && version >= 0 {
			s.Looks.Know(e, s.Type, s.Dir)
		}
		if n, err = s.answer(ctx, e, uuid, res[at:]); err == nil {
			n.Before = found
		}
		return n, err
	case errors.Is(err, zkconn.ErrNotSent):
		return nil, ErrAgain
	case zkconn.Unknown(err):
		// Look for the node while there is a connection. If it is not found, the reaper removes what appears later.
		return s.find(ctx, e, uuid)
	case errors.As(err, &refused):
		return s.refused(ctx, e, refused, ops[:at], uuid)
	default:
		return s.refused(ctx, e, &zkconn.TxnError{Index: -1, Err: err}, nil, uuid)
	}
}

// identity is what a sealed node is sealed with.
func (s *Spec) identity(e *zkconn.Epoch, found *zkconn.Content) (own zk.ACL, ok bool) {
	if s.Sealed != nil && s.Sealed(found) {
		own, ok, _ = e.Identity()
	}
	return own, ok
}

// tried calls Tried, if there is one.
func (s *Spec) tried(applied bool) {
	if s.Tried != nil {
		s.Tried(applied)
	}
}

// answer reads the answer to the transaction. The directory's Stat is that of the
// very moment after our create, because a transaction has one zxid:
//   - NumChildren counts our node and everybody who came before it and is still there;
//   - Mzxid is the zxid of the transaction, so it is our node's czxid.
func (s *Spec) answer(ctx context.Context, e *zkconn.Epoch, uuid string, res []zk.MultiResponse) (*Node, error) {
	name := path.Base(res[0].String)
	if !strings.HasPrefix(name, s.Name(uuid)) {
		Abandon(e, s.Dir, uuid)
		return nil, fmt.Errorf("the servers made node %q, which is not what was asked for", res[0].String)
	}
	n := &Node{Name: name, Path: s.Dir + "/" + name, UUID: uuid, Epoch: e}
	if len(res) > 1 && res[1].Stat != nil {
		n.Dir, n.Czxid = res[1].Stat, res[1].Stat.Mzxid
		return n, nil
	}
	if err := s.stat(ctx, n); err != nil {
		n.reap()
		return nil, err
	}
	return n, nil
}

// reap gives the reaper a node that turned out to be useless, and
// its duplicate, if a request that was applied twice has made one.
func (n *Node) reap() {
	n.Epoch.Reap(zkconn.Orphan{Dir: path.Dir(n.Path), Prefix: Prefix(n.UUID)})
	Settle(n.Epoch, n.Epoch.Reap(zkconn.Orphan{Dir: path.Dir(n.Path), Node: n.Path}), Grace)
}

// stat asks for the node's czxid where no answer told it,
// and checks that an ephemeral node belongs to this session.
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

// refused handles a transaction of which nothing was applied. before are its operations before the create.
func (s *Spec) refused(ctx context.Context, e *zkconn.Epoch, t *zkconn.TxnError, before []any, uuid string) (*Node, error) {
	switch {
	case t.Index >= 0 && t.Index < len(before):
		// What was to be deleted is gone already, or what was checked has changed.
		// The cause may be that this very request was applied before (it was
		// repeated on the way). So the node is looked for before another attempt.
		// Only what was checked is for the caller to judge, and a create among the operations checks that a node is
		// missing. What is gone already need not be written to or deleted any more.
		n, err := s.find(ctx, e, uuid)
		switch before[t.Index].(type) {
		case *zk.CheckVersionRequest, *zk.CreateRequest:
			if errors.Is(err, ErrAgain) {
				return nil, &Refused{t.Index, t.Err}
			}
		}
		return n, err
	case errors.Is(t, zk.ErrNoNode):
		s.Looks.Forget(s.Type, s.Dir)
		return nil, errNoDir
	case errors.Is(t, zk.ErrBadVersion) && t.Index > len(before):
		// Another process has written to the directory since the look; or this very request was applied before.
		return s.find(ctx, e, uuid)
	case errors.Is(t, zk.ErrNoAuth) && t.Index > len(before) && s.Plain != nil: // later requests leave this operation out
		s.Plain.Store(true)
		return nil, ErrAgain
	case errors.Is(t, zk.ErrInvalidACL) && Sealed(uuid): // the leader does not know the scheme of the identity
		e.WithdrawIdentity()
		return nil, ErrAgain
	case errors.Is(t, zk.ErrSessionExpired):
		return nil, zkconn.ErrOver
	case errors.Is(t, zk.ErrNodeExists) && s.Flags&zk.FlagSequence != 0:
		// The node that exists can only be ours, because nobody else has the uuid: this very request
		// was applied before, and at the end of the sequence numbers it got the same number.
		return s.find(ctx, e, uuid)
	}
	return nil, t.Err
}
