package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// The nodes of a group. While a round lasts there is
//
//	round                 watched by all who wait; it is never written to
//	round/members/<id>    the record of the members that one WaitGroup added in one session
//	round/alive/<id>      ephemeral: its session lives, and a member of the record is not done
//	round/turn           one that was refused several times makes a change, and no other does: see gate.Turn
//
// and after a round with deaths, until the group is removed,
//
//	dead                  who died, in the latest rounds with deaths
//
// If a record has members that are not done and no node in alive, these members are dead. To know that takes no clock
// and no listener: the transaction that says that the last member of a record is done removes the node in alive with
// it. When alive is empty, the round is over. The Stat of alive in the answer to that same transaction tells that.
func (g *WaitGroup) base() string            { return g.at.Full(g.path) }
func (g *WaitGroup) round() string           { return g.base() + "/round" }
func (g *WaitGroup) members() string         { return g.round() + "/members" }
func (g *WaitGroup) alive() string           { return g.round() + "/alive" }
func (g *WaitGroup) dead() string            { return g.base() + "/dead" }
func (g *WaitGroup) record(id string) string { return g.members() + "/" + id }
func (g *WaitGroup) life(id string) string   { return g.alive() + "/" + id }

// turn is that of a new batch.
func (g *WaitGroup) turn() *gate.Turn { return &gate.Turn{Node: g.round() + "/turn", Line: g.line} }

// turns is the queue for the turn. It is among the records, like records without members. So whoever removes the round, of this
// version or an older one, removes what is left of the queue.
func (g *WaitGroup) turns() *queue.Queue {
	return gate.Line(g.at.Queue("/round/members", queue.KindLock), g.round(), g.alive())
}

// Member is what the servers know of the members that one WaitGroup added in one session.
type Member struct {
	zksync.Owner
	// N is the number of these members that are not done.
	N int
	// Dead tells that their session has ended.
	Dead bool
}

// String is "host (pid 1, name)", with what is known, and the number of members if it is not 1.
func (m Member) String() string {
	if m.N > 1 {
		m.Name = strings.TrimPrefix(fmt.Sprint(m.Name, ", ", m.N, " members"), ", ")
	}
	if m.Owner == (zksync.Owner{}) {
		return "unknown host"
	}
	return m.Owner.String()
}

// DeadMembersError names the members of a group that died before they were done.
// errors.Is(err, zksync.ErrBroken) is true for it.
type DeadMembersError struct {
	// Members are the dead.
	Members []Member
	// More is the number of further records of dead members.
	More int
}

// Error names the dead.
func (e *DeadMembersError) Error() string {
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = m.String()
	}
	text := "zkwaitgroup: died without Done: " + strings.Join(names, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more", e.More)
	}
	return text
}

// Unwrap returns zksync.ErrBroken.
func (e *DeadMembersError) Unwrap() error { return zksync.ErrBroken }

// account is the data of a node in members, and the part of the node dead that tells of it.
type account struct {
	// N is the number of members that were added, less those that their own WaitGroup said are done. Only that
	// WaitGroup writes it. Of the dead it is the number that were not done.
	N int `json:"n"`
	// Taken is the number of members that others said are done, for each of these by its id. Each writes only its own
	// number. So if its answer is lost, it finds out whether its request was applied.
	Taken map[string]int `json:"taken,omitempty"`

	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Since string `json:"since,omitempty"`

	// Of the dead: the name of the node, and the N in its data.
	ID  string `json:"id,omitempty"`
	Own int    `json:"own,omitempty"`

	version int32
}

// left is the number of members that are not done.
func (r *account) left() int {
	n := r.N
	for _, taken := range r.Taken {
		n -= taken
	}
	return max(n, 0)
}

// member is the record as users see it. Anybody may have written the data of the node, so it
// is cleaned before it can reach a terminal.
func (r *account) member(dead bool) Member {
	owner := node.Content{Owner: node.Owner{Host: r.Host, PID: r.PID, Name: r.Name}}
	return Member{Owner: node.Decode(owner.Encode()).Owner, N: r.left(), Dead: dead}
}

// queues reports whether a name among the records is an entry of the queue for the turn.
func queues(id string) bool {
	_, ok := queue.ParseEntry(id)
	return ok
}

// read reads a record, nil if there is none or the data is not that of a record.
func (g *WaitGroup) read(ctx context.Context, e *zkconn.Epoch, id string) (*account, error) {
	if queues(id) {
		return nil, nil
	}
	data, stat, err := e.Get(ctx, g.record(id))
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &account{version: stat.Version}
	if json.Unmarshal(data, r) != nil {
		return nil, nil
	}
	return r, nil
}

// listed lists a directory of a round as this server knows it. zxid is that of the transaction
// that began the round, 0 if there is none.
func (g *WaitGroup) listed(ctx context.Context, e *zkconn.Epoch, dir string) (names []string, zxid int64, err error) {
	names, stat, err := e.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return names, stat.Czxid, nil
}

// Members lists the members that are not done, also the dead of the round, in no order. It blocks for the servers'
// answers, until ctx ends (the error wraps the context's error) or the session is closed (zksync.ErrClosed). It is
// made of several reads. While others add members or are done, the group may never have had exactly that state.
func (g *WaitGroup) Members(ctx context.Context) (all []Member, err error) {
	return g.made().list(ctx, "members")
}

// list is Members, as part of the method op.
func (g *WaitGroup) list(ctx context.Context, op string) (all []Member, err error) {
	err = g.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		all = nil
		if err := g.at.Look(ctx, e, layout.WaitGroup); err != nil {
			return err
		}
		if err := record.Synced(ctx, e, g.base()); err != nil {
			return err
		}
		ids, _, err := g.listed(ctx, e, g.members())
		if err != nil {
			return err
		}
		// This is read after the list of the records: members that are added
		// between the two reads must not look dead.
		alive, _, err := g.listed(ctx, e, g.alive())
		if err != nil {
			return err
		}
		living := setOf(alive)
		for _, id := range ids {
			r, err := g.read(ctx, e, id)
			if err != nil {
				return err
			}
			if r != nil && r.left() > 0 {
				all = append(all, r.member(!living[id]))
			}
		}
		return nil
	})
	if err != nil {
		return nil, errs.Wrap(op, g.path, err)
	}
	return all, nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// maxMissing is the greatest length of the list of Missing: any program may have written the numbers in records.
const maxMissing = 1 << 20

// Missing returns the owners of the living members that are not done, once for each member. If there are more than
// 1,048,576, the error is zksync.ErrMisuse; Members counts them.
func (g *WaitGroup) Missing(ctx context.Context) (owners []zksync.Owner, err error) {
	all, err := g.made().list(ctx, "missing")
	for _, m := range all {
		if m.Dead {
			continue
		}
		if m.N > maxMissing-len(owners) {
			return nil, errs.Wrap("missing", g.path, fmt.Errorf("%w: more than %d members are missing; use Members", zksync.ErrMisuse, maxMissing))
		}
		for range m.N {
			owners = append(owners, m.Owner)
		}
	}
	return owners, err
}

// Count is the number of living members that are not done. It blocks and fails like Members, and like Members it is
// made of several reads. It costs a read for each process that has members.
func (g *WaitGroup) Count(ctx context.Context) (n int, err error) {
	all, err := g.made().list(ctx, "count")
	for _, m := range all {
		if !m.Dead {
			n += m.N
		}
	}
	return n, err
}
