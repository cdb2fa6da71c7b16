// Package zkbarrier lets a fixed number of processes wait for each other: after each step ([Barrier]), or to
// begin and finish together ([DoubleBarrier]).
package zkbarrier

import (
	"context"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Barrier lets a fixed number of parties wait for each other, again and again: java.util.concurrent's
// CyclicBarrier for many machines. Each time all parties arrive is a generation.
//
// A generation breaks when a waiting party gives up (its context ends) or its session ends, and when the
// action fails. Then the barrier is broken for all, until a [Barrier.Reset]. Nothing notices the death of a
// party between two steps: give Await a context that ends. Each call of Await is a party of its own.
type Barrier struct {
	at      *session.Access
	parties int
	action  func(context.Context) error
	line    *queue.Queue               // see turn
	terms   record.Terms[barrierState] // the base node as far as known; every arrival makes the servers check it
}

// actionOption is an option that only NewBarrier takes.
type actionOption struct {
	zksync.Option
	action func(context.Context) error
}

// WithAction makes the last party to arrive run action before any party leaves, once in each generation. All
// parties give the same action. Its context also ends when the generation breaks (cause [BrokenError]) or the
// session is lost. If it fails or panics, so does that party's Await, and the barrier breaks.
func WithAction(action func(ctx context.Context) error) zksync.Option {
	return actionOption{session.Misplaced("WithAction"), action}
}

// maxParties keeps the transaction in which all parties leave below what the servers accept, 1 MB, if
// the path is short. For long paths see fit.
const maxParties = 2000

// NewBarrier names a barrier of 1 to 2000 parties. All leave in one request of less than 1 MB: each party
// takes up to 160 bytes more than the barrier's path.
func NewBarrier(s *zksync.Session, path string, parties int, opts ...zksync.Option) *Barrier {
	own, rest := session.Own[actionOption](opts)
	b := &Barrier{parties: parties, at: session.NewAccess("zkbarrier", (*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		b.action = o.action
	}
	if parties < 1 || parties > maxParties {
		b.at.Refuse(errs.Misuse("a barrier of %d parties; it can have 1 to %d", parties, maxParties))
	}
	if b.at.Misuse() == nil {
		b.terms.Base, b.terms.ACL, b.terms.Type, b.terms.Keys = b.at.Full(path), b.at.ACL(), layout.Barrier, []string{"parties", "generation"}
		b.terms.First = func() (barrierState, []string) {
			return barrierState{Parties: parties}, []string{b.dir(0), b.open(0)}
		}
		b.terms.Check = b.check
		b.line = gate.Line(b.at.Queue("/turns", queue.KindLock), b.base(), b.base())
		b.at.Refuse(b.fit())
	}
	return b
}

// made is b, which NewBarrier has made. Of a zero or nil value it panics.
func (b *Barrier) made() *Barrier {
	if b == nil || b.at == nil {
		panic(errs.Unmade("zkbarrier", "a Barrier", "NewBarrier"))
	}
	return b
}

// barrierState is the data of a barrier's base node. It changes only when a generation ends, and when a Reset begins
// the next one after a broken one. So a process that knows the version of the data knows the whole state.
type barrierState struct {
	Parties    int   `json:"parties"`
	Generation int64 `json:"generation"`
	Broken     bool  `json:"broken,omitempty"`

	version int32 // of the base node's data
}

// next is the state after all parties have left, or after a Reset: the next generation is open.
func (st barrierState) next() barrierState {
	st.Generation, st.Broken, st.version = st.Generation+1, false, zkconn.NextVersion(st.version)
	return st
}

// broken is the state in which the generation is broken.
func (st barrierState) broken() barrierState {
	st.Broken, st.version = true, zkconn.NextVersion(st.version)
	return st
}

func (b *Barrier) base() string { return b.at.Full(b.at.Path) }

func (b *Barrier) child(name string, generation int64) string {
	return fmt.Sprintf("%s/%s-%d", b.base(), name, generation)
}

// dir is the directory of a generation. It has a node for every party that waits.
func (b *Barrier) dir(generation int64) string { return b.child("parties", generation) }

// open is a node that exists until the generation ends, in whichever way. Every waiter watches it.
func (b *Barrier) open(generation int64) string { return b.child("open", generation) }

// ended is the node that says how the generation ended: a barrierRecord.
func (b *Barrier) ended(generation int64) string { return b.child("ended", generation) }

// turn is the turn of a new call. It is for parties that came too late several times: the party that has it arrives,
// and no other does.
func (b *Barrier) turn() *gate.Turn { return &gate.Turn{Node: b.base() + "/turn", Line: b.line} }

// check refuses a barrier with another number of parties.
func (b *Barrier) check(st barrierState) error {
	if st.Parties != b.parties {
		return errs.Misuse("the number of parties of the barrier is %d, not %d; use the same number everywhere, or first remove the barrier with menagerie reset", st.Parties, b.parties)
	}
	return nil
}

// fit returns an error if the servers would not accept the transaction in which all parties leave. It has the paths of
// all parties and of eight other nodes, and less than 160 bytes more for each.
func (b *Barrier) fit() error {
	size := (b.parties+8)*(len(b.base())+160) + 8*record.ACLSize(b.at.ACL())
	if size > record.MaxTransaction {
		return errs.Misuse("all %d parties leave in one request, of %d bytes with this path and chroot (%d bytes), "+
			"and the servers accept %d: use a shorter path or fewer parties", b.parties, size, len(b.base()), record.MaxTransaction)
	}
	return nil
}

// Parties is the number of parties.
func (b *Barrier) Parties() int { return b.made().parties }

// self is this process.
func (b *Barrier) self() *owner {
	o := owner(b.at.Content(node.Content{}).Owner)
	return &o
}
