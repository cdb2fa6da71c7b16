package zkwatch

import (
	"context"
	"iter"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Node is a state of a node.
type Node struct {
	Path string // as the session's user knows it
	Data []byte
	Stat zk.Stat
	OK   bool // there is such a node; if not, Data and Stat are empty, or those of the node that was deleted
}

// access is what the functions need of a session.
func access(s *zksync.Session, path string) *session.Access {
	return session.NewViewAccess[session.Option]((*session.Session)(s), path, nil)
}

// Data is a loop over the states of the data of the node at path, which may be "/": the present one, and then every later one. If the node
// does not exist, that is a state, too, and the loop waits until it is made. If the data change several times
// before they are read, only the last state is told: the difference of Stat.Version tells how many were passed over.
//
// Each step blocks until the next change, through disconnects and new sessions. The loop ends with an error, told once: that of
// ctx, zksync.ErrClosed if the session is closed, zksync.ErrMisuse for a malformed path or a nil session, or a refusal of
// the servers (zk.ErrNoAuth). It does no I/O before it is ranged over, can be ranged over more than once, and leaves no
// watch behind when its body leaves it.
//
// The first state costs one request, two if there is no node. Each change costs one; a new session one more.
func Data(ctx context.Context, s *zksync.Session, path string) iter.Seq2[Node, error] {
	at := access(s, path)
	return func(yield func(Node, error) bool) {
		for n, err := range follow.Data(ctx, at, at.Full(path)) {
			if !yield(nodeOf(path, n.Data, n.Stat), errs.Wrap("watch", path, err)) {
				return
			}
		}
	}
}

func nodeOf(path string, data []byte, stat *zk.Stat) Node {
	n := Node{Path: path, Data: data, OK: stat != nil}
	if stat != nil {
		n.Stat = *stat
	}
	return n
}

// Children is a loop over the names of the children of the node at path, sorted: the present ones, and then those after every
// change. They are nil while there is no node. A child that was deleted and made again is a change, although the names
// are the same. It blocks, ends and costs like [Data]. Keep directories so small that a listing stays below
// 1 MB: many clients refuse longer answers.
func Children(ctx context.Context, s *zksync.Session, path string) iter.Seq2[[]string, error] {
	at := access(s, path)
	return func(yield func([]string, error) bool) {
		for l, err := range follow.Children(ctx, at, at.Full(path)) {
			slices.Sort(l.Names)
			if l.Stat != nil && l.Names == nil {
				l.Names = []string{}
			}
			if !yield(l.Names, errs.Wrap("watch", path, err)) {
				return
			}
		}
	}
}
