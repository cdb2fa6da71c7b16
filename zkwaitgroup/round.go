package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// The nodes of a group. While a round lasts there is
//
//	round                 watched by all waiters; written to when records are removed before it
//	round/members/<id>    the record of the members that one WaitGroup added in one session
//	round/alive/<id>      ephemeral: its session lives, and a member of the record is not done
//	round/turn            one call that was refused several times makes a change, and no other does: see gate.Turn
//
// and after a round with deaths, until the group is removed,
//
//	dead                  who died, in the latest rounds with deaths
//
// If a record has members that are not done and no node in alive, these members are dead. To know that takes no clock
// and no listener: the transaction that says that the last member of a record is done removes the node in alive with
// it. When alive is empty, the round is over. The Stat of alive in the answer to that same transaction shows it.
func (g *WaitGroup) base() string            { return g.at.Full(g.path) }
func (g *WaitGroup) round() string           { return g.base() + "/round" }
func (g *WaitGroup) members() string         { return g.round() + "/members" }
func (g *WaitGroup) alive() string           { return g.round() + "/alive" }
func (g *WaitGroup) dead() string            { return g.base() + "/dead" }
func (g *WaitGroup) record(id string) string { return g.members() + "/" + id }
func (g *WaitGroup) life(id string) string   { return g.alive() + "/" + id }

// beginning makes the nodes of a round.
func (g *WaitGroup) beginning() (ops []any) {
	for _, path := range []string{g.round(), g.members(), g.alive()} {
		ops = append(ops, &zk.CreateRequest{Path: path, Acl: g.at.ACL()})
	}
	return ops
}

// turn is that of a new batch.
func (g *WaitGroup) turn() *gate.Turn { return &gate.Turn{Node: g.round() + "/turn", Line: g.line} }

// turns is the queue for the turn. It is among the records, like records without members, so it is removed with the round.
func (g *WaitGroup) turns() *queue.Queue {
	return gate.Line(g.at.Queue("/round/members", queue.KindLock), g.round(), g.alive())
}

// tally is the data of a record, and the part of the node dead about it.
type tally struct {
	// N is the number of members that were added, less those that their own WaitGroup said are done. Only that
	// WaitGroup writes it. Of the dead it is the number that were not done.
	N int `json:"n"`
	// Taken is the number of members that others said are done, for each of these by its id.
	Taken map[string]int `json:"taken,omitempty"`

	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Since string `json:"since,omitempty"`

	ID string `json:"id,omitempty"` // of the dead: the name of the record

	version int32
	written int64 // the zxid of the last change
}

// left is the number of members that are not done. Any program may have written the numbers.
func (t *tally) left() int {
	n := max(t.N, 0)
	for _, taken := range t.Taken {
		n = max(n-max(taken, 0), 0)
	}
	return n
}

// sum is a + b of two numbers of members, or the greatest number if that is less.
func sum(a, b int) int { return a + min(b, math.MaxInt-a) }

// owner is the record without the members. Any program may have written the data, so they are cleaned and cut before they can
// reach a terminal.
func (t *tally) owner() node.Content {
	since, _ := time.Parse(time.RFC3339Nano, t.Since) // zero if another program has written something else
	return node.Decode(node.Content{Owner: node.Owner{Host: t.Host, PID: t.PID, Name: t.Name}, Since: since}.Encode())
}

// member is the record as users see it.
func (t *tally) member(dead bool) Member {
	return Member{Owner: zksync.Owner(t.owner().Owner), N: t.left(), Dead: dead}
}

// idLength is that of the name of a record.
const idLength = 36

// ofDead is the part of the node dead about the record with this name. A name that is longer than those of records is cut.
func (t *tally) ofDead(id string) tally {
	o := t.owner()
	return tally{ID: id[:min(len(id), idLength)], N: t.left(), Host: o.Host, PID: o.PID, Name: o.Name}
}

// decode reads the data of a record. Data that are not those of a record count no members.
func decode(c zkconn.Content) *tally {
	t := tally{}
	if json.Unmarshal(c.Data, &t) != nil {
		t = tally{}
	}
	t.version, t.written = c.Stat.Version, c.Stat.Mzxid
	return &t
}

// own is a record of this WaitGroup. Only the goroutine that writes uses it, except for sure.
type own struct {
	id    string
	epoch *zkconn.Epoch
	round int64       // 0 if unknown
	tally tally       // as far as known; once the session is over, of the members whose Adds have returned
	sure  atomic.Bool // tally was read or written here, and the record's node in alive has had no event since
	dead  bool        // that node is gone although members are left
	late  bool        // a request that creates the record may yet be applied
	spare int         // once the session is over: how many calls of Done for it change nothing; -1 if unknown
}

// read reads a record, nil if there is none.
func (g *WaitGroup) read(ctx context.Context, e *zkconn.Epoch, id string) (*tally, error) {
	all, err := g.readAll(ctx, e, []string{id})
	return all[0], err
}

// readAll reads records, many at once; nil for each that is not there.
func (g *WaitGroup) readAll(ctx context.Context, e *zkconn.Epoch, ids []string) ([]*tally, error) {
	all, paths := make([]*tally, len(ids)), make([]string, len(ids))
	for i, id := range ids {
		paths[i] = g.record(id)
	}
	err := e.GetEach(ctx, paths, func(i int, c zkconn.Content) error { all[i] = decode(c); return nil })
	return all, err
}

// listed lists a directory of a round as this server knows it. Its Czxid is that of the transaction that began the
// round; the zero Stat means that there is no round.
func (g *WaitGroup) listed(ctx context.Context, e *zkconn.Epoch, dir string) ([]string, zk.Stat, error) {
	names, stat, err := e.Children(ctx, dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, zk.Stat{}, nil
	case err != nil:
		return nil, zk.Stat{}, err
	}
	return names, *stat, nil
}

// look reads a record, and then who is alive, after the server has caught up with the leader. round is 0 if the record is
// gone and the round is over.
func (g *WaitGroup) look(ctx context.Context, e *zkconn.Epoch, id string) (t *tally, alive []string, round int64, err error) {
	if err = record.Synced(ctx, e, g.base()); err == nil {
		t, err = g.read(ctx, e, id)
	}
	if err != nil {
		return nil, nil, 0, err
	}
	alive, stat, err := g.listed(ctx, e, g.alive())
	if err == nil && t != nil && stat.Czxid == 0 { // alive is removed together with the last records
		if t, err = g.read(ctx, e, id); t != nil {
			err = errRemoved
		}
	}
	if round = stat.Czxid; t == nil && len(alive) == 0 { // perhaps another process is removing the round, and not done yet
		round = 0
	}
	return t, alive, round, err
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
