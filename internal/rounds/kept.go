package rounds

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// ErrDone means that all items of a worker are done, in a round that is kept.
var ErrDone = errors.New("the round is done")

// touch is the change that keeps a round. The version of the node is above 0 from then on, and the node has the time.
func (n Nodes) touch(round string) any {
	return &zk.SetDataRequest{Path: n.open(round), Version: -1}
}

// clock is the time by the clock of the servers' leader, in milliseconds. What is read afterwards is not older.
func (n Nodes) clock(ctx context.Context, e *zkconn.Epoch) (int64, error) {
	res, err := node.RepeatTransaction(ctx, e, &zk.SetDataRequest{Path: n.Base + "/writers", Version: -1})
	switch {
	case err != nil:
		return 0, err
	case len(res) != 1 || res[0].Stat == nil:
		return 0, errors.New("the servers gave no time")
	}
	return res[0].Stat.Mtime, nil
}

// kept is what a round is to a worker that keeps rounds.
type kept struct {
	ours bool // it is kept, for this list
	over bool // it is not for this list, or was kept for too long, and all is done
}

// look looks at the present round. Its error is ErrDone if the round is kept for this list, and all is done.
func (w *Worker) look(ctx context.Context, e *zkconn.Epoch, round string, clock int64) (kept, error) {
	st, there, err := e.Exists(ctx, w.open(round))
	if err != nil || !there || st.Version == 0 {
		return kept{}, err
	}
	names, _, err := e.Children(ctx, w.Dir(round))
	if err != nil {
		return kept{}, unlessGone(err)
	}
	if slices.Contains(names, "list-"+w.digest) && clock-st.Mtime <= w.Keep.Milliseconds() {
		done := Done(names)
		if !slices.ContainsFunc(w.names, func(item string) bool { return !done[item] }) {
			return kept{}, ErrDone
		}
		w.Seen = done
		return kept{ours: true}, nil
	}
	over, err := w.complete(ctx, e, round, names)
	return kept{over: over}, err
}

// complete reports whether the items of all lists are done. A node of an item does not show its hash, so they are counted.
func (n Nodes) complete(ctx context.Context, e *zkconn.Epoch, round string, names []string) (bool, error) {
	lists := Lists(names)
	for i, name := range lists {
		lists[i] = n.Dir(round) + "/" + name
	}
	var all [][]byte
	err := e.GetEach(ctx, lists, func(_ int, c zkconn.Content) error {
		all = append(all, c.Data)
		return nil
	})
	return err == nil && len(Done(names)) >= Items(all), err
}

// Lists is the names of the nodes of lists, of the names of a round's children.
func Lists(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "list-") })
}

// Items is how many items are in lists, given as the data of their nodes.
func Items(lists [][]byte) int {
	var all List
	for _, data := range lists {
		all = append(all, decodeList(data)...)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}

// Done is the items that are done, given as the names of their nodes, by the names of a round's children.
func Done(names []string) map[string]bool {
	done := make(map[string]bool, len(names))
	for _, name := range names {
		if item, is := strings.CutPrefix(name, "item-"); is {
			done[item] = true
		}
	}
	return done
}
