package record

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Owners reads the owners of the nodes with these names in dir. It leaves out nodes that are gone.
func Owners[O node.AnyOwner](ctx context.Context, e *zkconn.Epoch, dir string, names []string) (all []O, err error) {
	for _, name := range names {
		data, _, err := e.Get(ctx, dir+"/"+name)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, O(node.Decode(data).Owner))
	}
	return all, nil
}
