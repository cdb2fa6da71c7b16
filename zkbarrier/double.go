package zkbarrier

import (
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// DoubleBarrier lets n parties begin a piece of work together and finish it together, in rounds. A party that
// finds a round full or open waits for the next one. One object is one party, with one call at a time.
//
// A party that dies while it waits in Enter no longer counts when its session ends. One that dies inside
// counts as having left then, and the Leave of the others returns a [BrokenError], at the latest another
// session timeout later.
type DoubleBarrier struct {
	at    *session.Access
	n     int
	terms record.Terms[doubleTerms]
	line  *queue.Queue // see turn

	mu      sync.Mutex
	busy    bool         // a call is under way; only that call uses the fields below, without mu
	entered *participant // nil while the party is outside
	// leftover has the node of an Enter that failed, if the node may still exist. It must
	// not count besides the node of the next Enter.
	leftover participant
}

// participant is one party in one round, with its node.
type participant struct {
	node     string // the path of its node on the servers; empty if there is none
	uuid     string // the unique part of the node's name
	tries    int    // requests that make the node
	round    int64  // see [DoubleBarrier.parties]; 0 while it is not known
	before   int64  // the round to which the party had come in a session that was lost
	since    int64  // the newest transaction that this process knew when the party came
	count    int    // how many parties were there when this one had come, itself included; 0 if the round is open
	quit     int    // how many had gone without Leave when this one counted: see unspoken
	epoch    *zkconn.Epoch
	leftover bool // its node is the node of an Enter that failed

	left   bool     // its node is gone, or the reaper removes it
	dead   bool     // its node had gone before, with the session
	unsure bool     // the round was over before this party could hear whether any had died
	died   int      // how many had died in the round that this party ended
	names  []string // the nodes that were in the round when this party last looked after it had left
	inside []zksync.Owner
}

// NewDoubleBarrier names a double barrier of n parties.
func NewDoubleBarrier(s *zksync.Session, path string, n int, opts ...zksync.Option) *DoubleBarrier {
	b := &DoubleBarrier{n: n, at: session.NewAccess("zkbarrier", (*session.Session)(s), path, opts).Without(session.OfHolds...)}
	if n < 1 {
		b.at.Refuse(errs.Misuse("a double barrier of %d parties; it needs one at least", n))
	}
	if b.at.Misuse() == nil {
		b.terms.Base, b.terms.ACL, b.terms.Type, b.terms.Keys = b.base(), b.at.ACL(), layout.DoubleBarrier, []string{"parties"}
		b.terms.First = func() (doubleTerms, []string) { return doubleTerms{n}, []string{b.parties(), b.gathering()} }
		b.terms.Check = b.check
		b.line = gate.Line(b.at.Queue("/turns", queue.KindLock), b.base(), b.base())
	}
	return b
}

// made is b, which NewDoubleBarrier has made. Of a zero or nil value it panics.
func (b *DoubleBarrier) made() *DoubleBarrier {
	if b == nil || b.at == nil {
		panic(errs.Unmade("zkbarrier", "a DoubleBarrier", "NewDoubleBarrier"))
	}
	return b
}

// doubleTerms is the data of the base node.
type doubleTerms struct {
	Parties int `json:"parties"`
}

func (b *DoubleBarrier) base() string { return b.at.Full(b.at.Path) }

// parties is a directory with one node for each party. It is made again for every round, so its czxid is the number of
// the round, which the answer to every arrival has.
func (b *DoubleBarrier) parties() string { return b.base() + "/parties" }

// gathering exists while a round gathers. It has n in its name, so that a party need not read n before it comes.
func (b *DoubleBarrier) gathering() string { return fmt.Sprintf("%s/gathering-%d", b.base(), b.n) }

// opened is the mark of an open round: it exists from when the round opens until it is over. It has the number of the
// round in its name, so a party that waits for the end of its round cannot mistake the next round for its own.
func (b *DoubleBarrier) opened(round int64) string { return fmt.Sprintf("%s/open-%x", b.base(), round) }

// turn is the turn of a new call. It is for parties that found several rounds full: the party that has it comes, and no
// other does.
func (b *DoubleBarrier) turn() *gate.Turn { return &gate.Turn{Node: b.base() + "/turn", Line: b.line} }

// check refuses a barrier of another number of parties.
func (b *DoubleBarrier) check(t doubleTerms) error {
	if t.Parties != b.n {
		return errs.Misuse("the number of parties of the double barrier is %d, not %d; use the same number everywhere, or first remove the barrier with menagerie reset", t.Parties, b.n)
	}
	return nil
}

// begin reserves the object for one call, and checks that the party may make this call now.
func (b *DoubleBarrier) begin(leaving bool) (*participant, error) {
	if err := b.at.Misuse(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.busy:
		return nil, errs.Misuse("another call is under way; an object is one party")
	case leaving && b.entered == nil:
		return nil, errs.Misuse("leave without enter")
	case !leaving && b.entered != nil && !b.entered.left:
		return nil, errs.Misuse("the party has entered already")
	}
	b.busy = true
	return b.entered, nil
}

// end ends the call; s is the party if it is inside, or has left and may wait again.
func (b *DoubleBarrier) end(s *participant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy, b.entered = false, s
}
