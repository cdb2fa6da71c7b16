package zkwatch

import (
	"context"
	"iter"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Node is a state of a node.
type Node struct {
	Path string
	Data []byte
	Stat zk.Stat
	OK   bool // the node exists; if not, Data and Stat are empty, or the last of a deleted node
}

// access makes what the functions need of a session.
func access(s *zksync.Session, path string) *session.Access {
	return session.NewViewAccess[session.Option]("zkwatch", (*session.Session)(s), path, nil)
}

// Data is a loop over the states of the data of the node at path: the present one, and then every later one.
// A missing node is a state, too. The difference of Stat.Version shows how many changes were skipped.
func Data(ctx context.Context, s *zksync.Session, path string) iter.Seq2[Node, error] {
	at := access(s, path)
	return func(yield func(Node, error) bool) {
		for n, err := range follow.Data(ctx, at, at.Full(path)) {
			if !yield(nodeOf(path, n.Data, n.Stat), at.Named("watch", err)) {
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

// Children is [Data] for the sorted names of the children of the node at path; nil while there is no node. A
// child that was deleted and made again is a change.
func Children(ctx context.Context, s *zksync.Session, path string) iter.Seq2[[]string, error] {
	at := access(s, path)
	return func(yield func([]string, error) bool) {
		for l, err := range follow.Children(ctx, at, at.Full(path)) {
			slices.Sort(l.Names)
			if l.Stat != nil && l.Names == nil {
				l.Names = []string{}
			}
			if !yield(l.Names, at.Named("watch", err)) {
				return
			}
		}
	}
}
