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

// arrival is the node of a party in the directory of a generation.
type arrival struct {
	name    string
	attempt string // names the party: the same in all nodes of one Await
	seq     int    // how many nodes had been made in the directory before
}

// attemptSize is the length of an attempt's name. It is long enough that no two attempts have the same name.
const attemptSize = 16

// newAttempt names an attempt.
func newAttempt() string { return strings.ReplaceAll(node.NewUUID(), "-", "")[:attemptSize] }

// arrivalPrefix is the name of an attempt's node up to its sequence number.
func arrivalPrefix(uuid, attempt string) string {
	return node.Prefix(uuid) + "-party-" + attempt + "-"
}

// parseArrival reads the name of a node; ok is false if it is not that of a party.
func parseArrival(name string) (a arrival, ok bool) {
	_, rest, ok := strings.Cut(name, "-party-")
	if !ok || len(rest) < attemptSize+2 || rest[attemptSize] != '-' {
		return arrival{}, false
	}
	seq, err := strconv.Atoi(rest[attemptSize+1:])
	return arrival{name, rest[:attemptSize], seq}, err == nil
}

// gathering lists the parties in the directory of a generation, in the order of their arrival.
type gathering struct {
	names   []string  // of all children
	all     []arrival // all nodes of parties; a party has two if its request was applied twice
	parties []arrival // the first node of each party
	made    int       // how many children were ever made
}

// gather makes a gathering of the children of a directory and its Stat.
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
	// A Stat's Cversion is the number of children that were made and of those that were deleted, together.
	// NumChildren is the difference of the two numbers. So half of the sum is the number that were made.
	g.made = int((dir.Cversion + dir.NumChildren) / 2)
	return g
}

// place is the attempt's place in the order of arrival, -1 if it is not there.
func (g gathering) place(attempt string) int {
	return slices.IndexFunc(g.parties, func(a arrival) bool { return a.attempt == attempt })
}

// has reports whether there is a child with this name.
func (g gathering) has(name string) bool { return slices.Contains(g.names, name) }

// holed reports whether one of the first n parties to arrive is gone. A party leaves a strict barrier
// early only by dying or by breaking it. So without a death the nodes of its parties have the numbers 0,
// 1, 2 and so on, and a missing number is a death.
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

// gathering lists the parties in the directory of a generation; none if the directory does not exist.
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
