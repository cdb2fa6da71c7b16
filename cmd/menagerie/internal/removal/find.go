package removal

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/zksync"
)

// Refusal is why nothing was removed.
type Refusal struct {
	Nobody bool // there is no contender, or no such path
	left   bool // the contender is not there any more
	text   string
}

func (r *Refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &Refusal{text: fmt.Sprintf(format, args...)} }

func gone(format string, args ...any) error {
	return &Refusal{left: true, text: fmt.Sprintf(format, args...)}
}

func nobody(format string, args ...any) error {
	return &Refusal{Nobody: true, left: true, text: fmt.Sprintf(format, args...)}
}

func left(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.left
}

// Find returns what is at a path, and one of its contenders: by the name or the path of its node, or with "" the only holder. It
// returns a *Refusal if there is none.
func Find(ctx context.Context, l *tree.Look, at, name string) (*tree.Object, tree.Row, error) {
	o, err := l.Object(ctx, at)
	if errors.Is(err, zk.ErrNoAuth) {
		err = refuse("%s is %s", at, tree.Denied)
	}
	if err == nil {
		err = queueOnly(o, at)
	}
	if err != nil {
		return nil, tree.Row{}, err
	}
	row, err := one(o, name)
	return o, row, err
}

// queueOnly refuses what has no contenders.
func queueOnly(o *tree.Object, at string) error {
	switch {
	case o == nil:
		return nobody("%s does not exist", at)
	case o.State == "denied":
		return refuse("%s is %s", at, tree.Denied)
	case o.Kind == layout.Word(layout.Durable):
		return refuse("%s is a durable lock, which no session holds: use menagerie unhold %s --break", at, at)
	case !o.Queue:
		return refuse("%s is no lock, semaphore or election: it is a %s", at, o.Kind)
	case len(o.Entries) == 0:
		return nobody("nobody holds or waits for %s", at)
	}
	return nil
}

func one(o *tree.Object, name string) (tree.Row, error) {
	if name == "" {
		return onlyHolder(o)
	}
	for _, r := range o.Entries {
		if r.Node == name || path.Base(r.Node) == name {
			return r, nil
		}
	}
	return tree.Row{}, gone("no node %s holds %s or waits for it: it is gone", errs.ShowPath(name), o.Path)
}

// onlyHolder refuses if there are several holders, and names them.
func onlyHolder(o *tree.Object) (tree.Row, error) {
	switch holders := o.In(zksync.Held); len(holders) {
	case 0:
		return tree.Row{}, nobody("nobody holds %s", o.Path)
	case 1:
		return holders[0], nil
	default:
		var all []string
		for _, h := range holders {
			all = append(all, h.Who()+" by "+path.Base(h.Node))
		}
		return tree.Row{}, refuse("%s has %d holders, name one with --node: %s", o.Path, len(holders), strings.Join(all, ", "))
	}
}
