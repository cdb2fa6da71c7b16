package zkbarrier

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// arrival is a node in the directory of a generation.
type arrival struct {
	name    string
	attempt string // whose it is: the same in all nodes of one Await
	seq     int    // counts what was ever created in the directory
}

// attemptSize is that of an attempt's name: enough that two never are the same.
const attemptSize = 16

func newAttempt() string { return strings.ReplaceAll(node.NewUUID(), "-", "")[:attemptSize] }

func arrivalPrefix(uuid, attempt string) string {
	return node.Prefix(uuid) + "-party-" + attempt + "-"
}

func parseArrival(name string) (a arrival, ok bool) {
	_, rest, ok := strings.Cut(name, "-party-")
	if !ok || len(rest) < attemptSize+2 || rest[attemptSize] != '-' {
		return arrival{}, false
	}
	seq, err := strconv.Atoi(rest[attemptSize+1:])
	return arrival{name, rest[:attemptSize], seq}, err == nil
}

// gathering is who is in the directory of a generation, in the order in which they came.
type gathering struct {
	names   []string  // all children
	all     []arrival // all nodes of parties; two of one party if a request was applied twice
	parties []arrival // the first node of each party
	made    int       // how many children were ever made
}

func gather(names []string, dir *zk.Stat) gathering {
	g := gathering{names: names}
	for _, n := range names {
		if a, ok := parseArrival(n); ok {
			g.all = append(g.all, a)
		}
	}
	slices.SortFunc(g.all, func(a, b arrival) int { return cmp.Compare(a.seq, b.seq) })
	seen := make(map[string]bool, len(g.all))
	for _, a := range g.all {
		if !seen[a.attempt] {
			seen[a.attempt] = true
			g.parties = append(g.parties, a)
		}
	}
	// A Stat's Cversion counts creates and deletes of children.
	g.made = int((dir.Cversion + dir.NumChildren) / 2)
	return g
}

// place is where the attempt stands in the order of arrival, -1 if it is not there.
func (g gathering) place(attempt string) int {
	return slices.IndexFunc(g.parties, func(a arrival) bool { return a.attempt == attempt })
}

func (g gathering) has(name string) bool { return slices.Contains(g.names, name) }

// holed reports whether one of the first n parties to arrive is gone. Nobody leaves a strict
// barrier but by dying or by breaking it, so the nodes of its parties have the numbers
// 0, 1, 2 and so on.
func (g gathering) holed(n int) bool {
	seen := make(map[string]bool, n)
	for i := range g.made {
		if i >= len(g.all) || g.all[i].seq != i {
			return true
		}
		if seen[g.all[i].attempt] = true; len(seen) == n {
			return false
		}
	}
	return false
}

// gathering lists who is there; nobody is in a directory that does not exist.
func (b *Barrier) gathering(ctx context.Context, e *zkconn.Epoch, generation int64) (gathering, error) {
	names, stat, err := e.Children(ctx, b.dir(generation))
	if errors.Is(err, zk.ErrNoNode) {
		return gathering{}, nil
	}
	if err != nil {
		return gathering{}, err
	}
	return gather(names, stat), nil
}
