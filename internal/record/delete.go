package record

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A node that several processes know by its name must not be deleted by that name alone. A delete whose answer was lost is
// repeated, or waits in a server's queue, and may be applied when there is a new node of the same name. The
// servers can check the version of a node. But the version of every new node is 0, so it does not tell a node from its
// successor.
//
// A child does. It is made under one node, and its name is used only once. So the child and the node are deleted in
// one transaction, which the servers refuse for any other node. Until then they refuse to delete the node without
// the child.

// PutMark marks the present node of that name, and returns the id of the mark. The error is zk.ErrNoNode
// if there is no node. The mark ends with the session.
func PutMark(ctx context.Context, e *zkconn.Epoch, path string, acl []zk.ACL) (id string, err error) {
	err = Insist(ctx, e, func() error {
		id = node.NewUUID() // a new one for each request: one that got no answer may yet mark a later node
		call := e.StartMulti(&zk.CreateRequest{Path: path + "/" + id, Acl: acl, Flags: zk.FlagEphemeral})
		_, err := call.Wait(ctx, e)
		if !call.Answered() || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrOver) { // the next session may have made it
			e.AmbiguousCreate(path, id, e.Connection())
			e.Reap(zkconn.Orphan{Dir: path, Prefix: id, Pending: call.Done(), Outcome: func() (string, bool) {
				_, err := call.Result()
				return "", err == nil || zkconn.Unknown(err)
			}})
		}
		if RefusedAt(err, 0, zk.ErrNodeExists) {
			return nil // by this very request, which arrived twice
		}
		return err
	})
	return id, err
}

// DeleteMarked deletes the node that has this mark, with the marks of others. It succeeds also if that node has
// gone meanwhile. If it fails, the mark is removed.
func DeleteMarked(ctx context.Context, e *zkconn.Epoch, path, id string) error {
	others := []string(nil)
	err := Insist(ctx, e, func() error {
		ops := []any{&zk.DeleteRequest{Path: path + "/" + id, Version: -1}}
		for _, o := range others {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + o, Version: -1})
		}
		_, err := e.StartMulti(append(ops, &zk.DeleteRequest{Path: path, Version: -1})...).Wait(ctx, e)
		switch {
		case RefusedAt(err, 0, zk.ErrNoNode):
			return nil
		case !Conflict(err):
			return err
		}
		names, _, err := e.Children(ctx, path) // somebody else deletes it, too, or has given that up
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		others = others[:0]
		for _, n := range names {
			if n != id {
				others = append(others, n)
			}
		}
		return ErrAgain
	})
	if err != nil {
		DropMark(e, path, id)
	}
	return err
}

// DropMark removes a mark.
func DropMark(e *zkconn.Epoch, path, id string) {
	node.Settle(e, e.Reap(zkconn.Orphan{Dir: path, Node: path + "/" + id}), node.Grace)
}
