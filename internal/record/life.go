package record

import (
	"context"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// A record that was destroyed may be made again, and then the versions of its nodes begin again. So what was computed from the old
// record could be accepted by the new one. Therefore a record has a name for its life, which is used only once: the data of the
// directory of its writers, and the name of a directory in that, in which the writers are. A change is made by a writer of the life
// that was read before the state. So no other record accepts it, however late it arrives.
//
// A record that an earlier version has made has no such name. Its writers are in the directory itself.

// WritersOf is the directory of the writers of a record's life.
func WritersOf(base, life string) string {
	dir := base + "/" + Writers
	if life != "" {
		dir += "/" + life
	}
	return dir
}

// IsLife reports whether a directory of writers is that of a life.
func IsLife(dir string) bool { return node.IsUUID(dir[strings.LastIndexByte(dir, '/')+1:]) }

// ReadAlive reads a node of the record, after the name of its life: the record has had this life when the node was as it is returned, or
// before. Both are one request on servers since 3.6.
func ReadAlive(ctx context.Context, e *zkconn.Epoch, base, path string) (data []byte, stat *zk.Stat, life string, err error) {
	err = e.GetMany(ctx, []string{WritersOf(base, ""), path}, func(i int, c zkconn.Content) error {
		if i == 1 {
			data, stat = c.Data, c.Stat
		} else if name := string(c.Data); node.IsUUID(name) { // another program may have written to it
			life = name
		}
		return nil
	})
	if err == nil && stat == nil {
		err = zk.ErrNoNode
	}
	return data, stat, life, err
}

// creations are the operations that create the nodes of a new record, below the base node. With a life one of them is the directory of the writers.
func (t *Terms[T]) creations(nodes []string, life string) (ops []any) {
	for _, path := range nodes {
		create := &zk.CreateRequest{Path: path, Acl: t.ACL}
		if ops = append(ops, create); life != "" && path == WritersOf(t.Base, "") {
			create.Data = []byte(life)
			ops = append(ops, &zk.CreateRequest{Path: WritersOf(t.Base, life), Acl: t.ACL})
		}
	}
	return ops
}

// read reads the data of the base node, and the name of the life if there is one.
func (t *Terms[T]) read(ctx context.Context, e *zkconn.Epoch) (data []byte, stat *zk.Stat, life string, err error) {
	if t.Lives {
		return ReadAlive(ctx, e, t.Base, t.Base)
	}
	if t.Read != nil {
		c, err := t.Read(ctx, e)
		return c.Data, c.Stat, "", err
	}
	data, stat, err = e.Get(ctx, t.Base)
	return data, stat, "", err
}
