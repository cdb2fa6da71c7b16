package zkbarrier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// barrierRecord is the data of the node that says how a generation ended.
type barrierRecord struct {
	Broken bool     `json:"broken,omitempty"`
	Passed []string `json:"passed,omitempty"` // the attempts of the parties that it counted, in the order of arrival
	breach          // of a broken generation
}

// remembered is the number of latest generations whose records are kept.
const remembered = 32

// state is the newest state that this object knows. It may be old, so the transaction of an arrival checks it.
func (b *Barrier) state(ctx context.Context, e *zkconn.Epoch) (barrierState, error) {
	return versioned(b.terms.Known(ctx, e))
}

// learn reads the state as the leader knows it. It creates the barrier if there is none.
func (b *Barrier) learn(ctx context.Context, e *zkconn.Epoch) (barrierState, error) {
	return versioned(b.terms.Latest(ctx, e))
}

// versioned is the state with the version of the base node's data.
func versioned(v record.Version[barrierState], err error) (barrierState, error) {
	v.T.version = v.Number
	return v.T, err
}

// advance records in this object that the state has changed.
func (b *Barrier) advance(from, to barrierState) {
	b.terms.Became(from.version, record.Version[barrierState]{T: to, Number: to.version})
}

// recorded reads the record of the end of the generation of st, as far as this server knows; nil if there is none.
func (b *Barrier) recorded(ctx context.Context, e *zkconn.Epoch, st barrierState) (*barrierRecord, error) {
	data, _, err := e.Get(ctx, b.ended(st.Generation))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	how, to := new(barrierRecord), st.next()
	_ = json.Unmarshal(data, how) // if another program has written there, nothing is known of the parties
	if how.Broken {
		to = st.broken()
	}
	b.advance(st, to)
	return how, nil
}

// end ends the generation of from, if it has not ended, in the way how, and begins the next one if to says so. It is one
// transaction, which changes the base node from the version of from. So a generation ends once, and in one way. leaving
// deletes the nodes of the parties that leave.
func (b *Barrier) end(ctx context.Context, e *zkconn.Epoch, from, to barrierState, how barrierRecord, leaving ...any) (err error) {
	g := from.Generation
	ops := []any{&zk.SetDataRequest{Path: b.base(), Data: record.Encode(to), Version: from.version}}
	if !from.Broken {
		// Before the nodes of the parties: events come in this order, so a party that watches both hears of the end
		// first, and does not take its neighbor for dead.
		ops = append(ops, &zk.DeleteRequest{Path: b.open(g), Version: -1})
		ops = append(append(ops, leaving...), &zk.CreateRequest{Path: b.ended(g), Data: record.Encode(how), Acl: b.at.ACL()})
		if g >= remembered {
			ops = append(ops, &zk.DeleteRequest{Path: b.ended(g - remembered), Version: -1})
		}
	}
	if to.Generation > g {
		// The directory is persistent, no container: only such a node can be made in a transaction.
		ops = append(ops, &zk.CreateRequest{Path: b.dir(g + 1), Acl: b.at.ACL()}, &zk.CreateRequest{Path: b.open(g + 1), Acl: b.at.ACL()})
	}
	for {
		_, err = node.RepeatChange(ctx, e, ops...)
		var txn *zkconn.TxnError
		if !errors.As(err, &txn) || txn.Index < 0 || txn.Index >= len(ops) {
			break
		}
		// What was removed externally needs no deletion. But if the node of a party is gone, it does not leave with the others.
		op, ok := ops[txn.Index].(*zk.DeleteRequest)
		if !ok || op.Path != b.ended(g-remembered) && op.Path != b.open(g) {
			break
		}
		ops = slices.Delete(ops, txn.Index, txn.Index+1)
	}
	if err == nil {
		b.advance(from, to)
	}
	return err
}

// Reset makes the barrier usable again. All its waiters get zksync.ErrBroken.
func (b *Barrier) Reset(ctx context.Context) error {
	from := int64(-1)
	return b.made().at.Run(ctx, "reset", func(ctx context.Context, e *zkconn.Epoch) error {
		return b.reset(ctx, e, &from)
	})
}

// reset begins the next generation. from is the generation that was the present one when the call began; -1 if the
// call has not read it yet. So a reset that continues in another session does not reset twice.
func (b *Barrier) reset(ctx context.Context, e *zkconn.Epoch, from *int64) (err error) {
	doubt := false // it may have been reset by this call
	defer func() { err = errs.InDoubt(err, doubt) }()
	for pace := (node.Pace{Free: 1}); ; {
		st, err := b.learn(ctx, e)
		if err != nil {
			return err
		}
		if *from >= 0 && st.Generation != *from { // this call or another has reset it
			b.tidyUp(ctx, e, st.Generation)
			return nil
		}
		*from = st.Generation
		why := breach{Why: Reset, By: b.self()}
		if !st.Broken {
			why = b.attended(ctx, e, st, why)
		}
		err = b.end(ctx, e, st, st.next(), barrierRecord{Broken: true, breach: why})
		if err != nil && !record.Conflict(err) {
			return err
		}
		doubt = doubt || err == nil || errs.Ambiguous(err)
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// tidyUp removes directories of broken generations that their last party could not remove. What fails is left for the
// next Reset.
func (b *Barrier) tidyUp(ctx context.Context, e *zkconn.Epoch, current int64) {
	names, _, _ := e.Children(ctx, b.base())
	for _, n := range names {
		var g int64
		if _, err := fmt.Sscanf(n, "parties-%d", &g); err == nil && g < current {
			_ = e.Delete(ctx, b.dir(g))
		}
	}
}

// arrival is the node of a party in the directory of a generation.
type arrival struct {
	name    string
	attempt string // names the party: the same in all nodes of one Await
	seq     int    // how many nodes had been made in the directory before
}

// attemptSize is the length of an attempt's name. No two attempts have the same name.
const attemptSize = 16

func attemptOf(uuid string) string { return strings.ReplaceAll(uuid, "-", "")[:attemptSize] }

// parseArrival reads the name of a node; ok is false if it is not the node of a party.
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

// attended is why, with the parties that are there in the generation of st, as far as the servers say that at once.
func (b *Barrier) attended(ctx context.Context, e *zkconn.Epoch, st barrierState, why breach) breach {
	soon, cancel := context.WithTimeout(ctx, record.GlanceLimit)
	defer cancel()
	g, err := b.gathering(soon, e, st.Generation)
	if err != nil {
		return why
	}
	names := g.members(b.parties)
	there, _ := record.Call(soon, e, b.dir(st.Generation), names) // without an answer in time the names are missing
	why.Count, why.Arrived = len(names), node.Owners[owner](there.Owners)
	return why
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
	// Cversion is the number of children made plus the number deleted, NumChildren is the difference.
	g.made = int((dir.Cversion + dir.NumChildren) / 2)
	return g
}

// place is the attempt's place in the order of arrival, -1 if it is not there.
func (g gathering) place(attempt string) int {
	return slices.IndexFunc(g.parties, func(a arrival) bool { return a.attempt == attempt })
}

// members are the names of the first n parties, or of as many as there are.
func (g gathering) members(n int) (names []string) {
	for _, a := range g.parties[:min(len(g.parties), n)] {
		names = append(names, a.name)
	}
	return names
}

// has reports whether there is a child with this name.
func (g gathering) has(name string) bool { return slices.Contains(g.names, name) }

// holed reports whether one of the first n parties to arrive is gone. A party leaves early only by dying or by breaking
// the barrier. So without a death the nodes have the numbers 0, 1, 2 and so on, and a missing number is a death.
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
