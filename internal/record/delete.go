package record

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A node that several processes know by its name must not be deleted by its name alone: a delete that is sent again, or waits
// in the queue of a server, may be applied when there is a new node of the same name, and the version of both may be 0. So
// the node gets a child with a name that is used only once. One transaction deletes the child and the node: the servers refuse it
// for any other node of that name. Until then they refuse to delete the node without the child.

// PutMark makes such a child, the mark, under the present node at path, and returns its id. The error is
// zk.ErrNoNode if there is no node. The mark is ephemeral: it ends with the session.
func PutMark(ctx context.Context, e *zkconn.Epoch, path string, acl []zk.ACL) (id string, err error) {
	return PutNamedMark(ctx, e, path, "", acl)
}

// PutNamedMark is PutMark for an id that begins with name.
func PutNamedMark(ctx context.Context, e *zkconn.Epoch, path, name string, acl []zk.ACL) (id string, err error) {
	r := node.Insist(ctx, e)
	for r.Next() {
		id = name + node.NewUUID() // a new id for each request: a request that got no answer may yet mark a later node
		call := e.StartMulti(&zk.CreateRequest{Path: path + "/" + id, Acl: acl, Flags: zk.FlagEphemeral})
		_, err := call.Wait(ctx, e)
		if !call.Answered() || zkconn.Unknown(err) {
			e.AmbiguousCreate(path, id, e.Connection())
			e.Reap(zkconn.Orphan{Dir: path, Prefix: id, Pending: call.Done(), Outcome: func() (string, bool) {
				_, err := call.Result()
				return "", !errors.Is(err, zkconn.ErrNotSent) // what is refused may have arrived twice
			}})
		}
		if r.Err = err; RefusedAt(err, 0, zk.ErrNodeExists) {
			r.Err = nil // this very request had made the mark, and arrived twice
		}
	}
	return id, r.Err
}

// DeleteMarked deletes the node that has this mark, together with the marks of others. If that node is gone
// meanwhile, it also succeeds. If it fails, it has the mark removed.
func DeleteMarked(ctx context.Context, e *zkconn.Epoch, path, id string) error {
	others := []string(nil)
	err := Insist(ctx, e, func() error {
		ops := []any{&zk.DeleteRequest{Path: path + "/" + id, Version: -1}}
		for _, o := range others {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + o, Version: -1})
		}
		_, err := node.RepeatChange(ctx, e, append(ops, &zk.DeleteRequest{Path: path, Version: -1})...)
		switch {
		case RefusedAt(err, 0, zk.ErrNoNode):
			return nil
		case !Conflict(err):
			return err
		}
		// Others want to delete the node, too, or have given that up: their marks are in the way.
		names, _, err := e.Children(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		others = others[:0]
		for _, n := range names {
			if n != id {
				others = append(others, n)
			}
		}
		return node.ErrAgain
	})
	if err != nil {
		node.Settle(e, e.Reap(zkconn.Orphan{Dir: path, Node: path + "/" + id}), node.Grace)
	}
	return err
}
