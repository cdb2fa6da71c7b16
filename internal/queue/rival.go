package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Rival is a recipe of another library that decides the same thing at the same path but ignores
// our nodes. With both at one path, two could hold at once. So ours refuses to work there.
type Rival struct {
	Type string                 // ours
	Node func(name string) bool // whether a child of the path is one of its nodes
	What string                 // what both recipes would do
}

// Refuse is an error if any of the children is one of the rival's.
func (r *Rival) Refuse(children []string) error {
	var found []string
	for _, name := range children {
		if r.Node(name) {
			found = append(found, errs.Quote(name))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	if more := len(found) - 3; more > 0 {
		found = append(found[:3], fmt.Sprintf("%d more", more))
	}
	return errs.Misuse("below the path is %s, of %s; use another path", strings.Join(found, ", "), r.What)
}

// RefuseAt is Refuse for the children of a node on the servers.
func (r *Rival) RefuseAt(ctx context.Context, e *zkconn.Epoch, node string) error {
	names, _, err := e.Children(ctx, node)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := r.Refuse(names); err != nil {
		return err
	}
	return layout.RefuseOther(r.Type, nil, names)
}
