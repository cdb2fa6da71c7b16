package queue

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Ticket is an entry of ours in a queue. It belongs to one epoch and ends with it.
type Ticket struct {
	Epoch *zkconn.Epoch
	Entry Entry // with its czxid, the fencing token
	Node  string
	Asked Revocation // to give the lock up
	Said  Said       // what the entry says of its owner
	// Before is the data of the last entry that was in the way. It is nil unless the entry has a traceparent, and it was read in time.
	Before *node.Content

	// Named says that another entry may say that its owner holds this one. So the node must not be handed over to another owner.
	Named atomic.Bool

	// Unanswered counts transactions of the holder that check the node and have no answer. Each may
	// yet be applied as long as the node is there, so the node must not be handed over to another hold.
	Unanswered atomic.Int32

	queue    *Queue
	readable bool   // the servers certainly notify us of the end of the node, because we may read it
	sole     bool   // it was the only child of the directory, right after it was made
	crowd    int32  // how many entries there were then, as far as is known; else 0
	front    int32  // how many have been deleted, at most, while anybody of them is ahead
	guess    *guess // of who is ahead, instead of the first listing; nil if there is none

	// inDoubt says that neither its entry nor a listing or guess since has shown what the queue is. So others
	// may be in its way (it must wait), and there may be a duplicate of it (its end looks for that).
	inDoubt bool

	// A grant needs proof that the leader of the servers counts the session as alive.
	// unwant ends the asking for proof, which begins when the ticket may be the next.
	// undepend ends the dependence on it, which begins with the grant. Each is nil before.
	unwant, undepend func()

	why atomic.Pointer[removal] // nil unless its node was removed while it was held

	delayed delayed // its mark, with a Delay
	own     ownNode
	sight   sight

	mu      sync.Mutex // guards what follows, but for reads of state
	state   atomic.Uint32
	missed  bool          // Removed came while the state was replacing
	removed chan struct{} // see Retire
	loss    *loss         // nil until it is granted
}

func newTicket(q *Queue, e *zkconn.Epoch, self Entry, node string) *Ticket {
	t := &Ticket{queue: q, Epoch: e, Entry: self, Node: node, readable: e.Reads(q.ACL)}
	t.Asked.t, t.own.t = t, t
	return t
}

// The states of a ticket.
const (
	live      uint32 = iota // it waits, or is held
	replacing               // a transaction of ours puts another node in the place of its own, which may be gone: see SetReplacing
	retiring                // a request of ours removes its node; nothing may be granted on it: see Retire
	over                    // it has ended: it has let go of all that it had
)

// Ending is why a ticket ends. A ticket ends once, and the first reason counts.
type Ending uint8

const (
	// Released: its holder gave it up, or the caller that waited for it did.
	Released Ending = iota
	// Overrun: the bound of its hold has passed.
	Overrun
	// Expired: its session has ended.
	Expired
	// Removed: its node is said to be gone, and we did not remove it.
	Removed
	// Replaced: a transaction of ours has removed the node, and the mark with it. Or there never was a node.
	Replaced
)

// outcome is what an Ending does. In any case the ticket lets go of the proof, of the watch for its loss, and of the node by
// which its holder is asked to give it up.
type outcome struct {
	node  bool // the node is removed, also if it is said to be gone: a node that is there must not stay, held by nobody
	mark  bool // the mark is removed; else the next grant waits: see mark.go
	loss  bool // the holder is told of a loss
	why   bool // the process that removed the node is asked why: see removed.go
	later bool // nothing happens yet: the removal may be our own. If the node was not replaced, it is looked at again
}

// outcomes are those of each Ending in each state but over, where nothing is left to do.
var outcomes = [over][Replaced + 1]outcome{
	live: {
		Released: {node: true, mark: true},
		Overrun:  {node: true},
		Expired:  {node: true, loss: true},
		Removed:  {node: true, loss: true, why: true},
		Replaced: {},
	},
	replacing: {
		Released: {node: true, mark: true},
		Overrun:  {node: true},
		Expired:  {node: true, loss: true},
		Removed:  {later: true},
		Replaced: {},
	},
	retiring: { // its holder has given it up, so there is no loss
		Released: {node: true, mark: true},
		Overrun:  {node: true},
		Expired:  {node: true},
		Removed:  {later: true},
		Replaced: {},
	},
}

// Unawaited is given to Leave in place of a time: Leave sends the request, and does not wait for the answer.
const Unawaited time.Duration = -1

// Leave is End with Released.
func (t *Ticket) Leave(grace time.Duration) { t.End(Released, grace) }

// End ends the ticket. The reaper of the epoch removes the node: it tries until the servers confirm that the
// node is gone. End waits for that at most for grace, and not if the ticket is over already.
func (t *Ticket) End(why Ending, grace time.Duration) {
	t.mu.Lock()
	was := t.state.Load()
	if was == over {
		t.mu.Unlock()
		return
	}
	do := outcomes[was][why]
	if do.later {
		t.missed = true
		t.mu.Unlock()
		return
	}
	// Before the request: its event must find the ticket over, or it would be taken for a loss.
	t.state.Store(over)
	removed, loss := t.removed, t.loss
	t.mu.Unlock()
	if removed != nil {
		defer close(removed)
	}
	if was == retiring {
		grace = 0
	}
	for _, end := range []func(){t.unwant, t.undepend} {
		if end != nil {
			end()
		}
	}
	loss.stop()
	do.why = do.why && loss != nil // else it was never granted
	t.remove(do, grace)
	var learn func()
	if do.why {
		learn = t.learnWhy() // whoever is notified of the loss waits for the reason
	}
	if do.loss {
		loss.tell(t)
	}
	if learn != nil { // the process that removed the node is answered when the holder knows
		learn()
	}
}

// remove removes what is left on the servers.
func (t *Ticket) remove(do outcome, grace time.Duration) {
	mark := t.delayed.mark.Swap(nil)
	defer mark.settle()
	now := grace != 0 && t.Epoch.Linked()
	if !do.why {
		t.Asked.drop(now)
	}
	if !do.node {
		return
	}
	if !do.mark {
		mark.settle()
		mark = nil
	}
	if t.inDoubt {
		// A request that was applied twice has left a duplicate.
		// Only a listing shows it, so the reaper looks for it.
		t.Epoch.Reap(zkconn.Orphan{Dir: t.queue.Dir, Prefix: node.Prefix(t.Entry.UUID)})
	}
	left := zkconn.Orphan{Dir: t.queue.Dir, Node: t.Node, First: mark.at()}
	if now {
		// On a healthy connection this one request is all. The servers answer the requests of a session in order. So
		// what this process asks for later finds the node gone, even if nobody waits for the answer.
		answered, confirmed := t.delete(mark)
		node.Settle(t.Epoch, answered, grace)
		if confirmed() {
			return
		}
		left.Pending, left.Outcome = answered, unless(confirmed, t.Node) // a slow answer is no reason to ask twice
	}
	t.Epoch.Reap(left)
}

// delete sends the request that deletes the node, and its mark. confirmed reports whether an answer has said that they are gone.
func (t *Ticket) delete(mark *ownMark) (answered <-chan struct{}, confirmed func() bool) {
	ops := t.removal(mark)
	if len(ops) == 1 {
		return confirmation(zkconn.Start(t.Epoch, zkconn.DeleteNode(t.Node)), zk.ErrNoNode)
	}
	gone := zk.ErrNoNode
	if mark != nil {
		gone = nil // the mark may be what was not there: then the reaper removes the node
	}
	return confirmation(t.Epoch.StartMulti(ops...), gone)
}

// unless is the Outcome of an orphan, for a request that removes its node.
func unless(confirmed func() bool, node string) func() (string, bool) {
	return func() (string, bool) {
		if confirmed() {
			return "", false
		}
		return node, false
	}
}

func confirmation[T any](c *zkconn.Call[T], gone error) (answered <-chan struct{}, confirmed func() bool) {
	return c.Done(), func() bool {
		if !c.Answered() {
			return false
		}
		_, err := c.Result()
		return err == nil || gone != nil && errors.Is(err, gone)
	}
}

// removal is how a transaction removes the node of a ticket that is given up: with the announcement, and with its mark.
func (t *Ticket) removal(mark *ownMark) []any {
	return append(append(t.announcement(), t.deletion()), mark.removal()...)
}

// announcement is what a transaction that gives the lock up does before it deletes the node. It tells the next in
// line that a holder has left. So only a ticket that was granted announces, and only if nothing of it stays: not in
// a downgrade. It is nil if the entry is not sealed, if we may not write to it on this connection, or if the next in
// line knows that nobody else is ahead: a mutex's entry that was alone when it was made. (The departure of a writer
// proves nothing by itself: a reader may be in its place.)
func (t *Ticket) announcement() []any {
	t.mu.Lock()
	granted := t.loss != nil
	t.mu.Unlock()
	if !granted || !t.Entry.sealed() || t.sole && t.Entry.Kind == KindLock {
		return nil
	}
	if _, _, known := t.Epoch.Identity(); !known {
		return nil
	}
	return []any{&zk.SetDataRequest{Path: t.Node, Version: -1}}
}

func (t *Ticket) deletion() any { return &zk.DeleteRequest{Path: t.Node, Version: -1} }

// Sole reports whether the entry was the only child of the directory, right after it was made.
func (t *Ticket) Sole() bool { return t.sole }

// AloneIn reports whether the names in the directory show the entry, no other contender, and no request to give the lock up that
// the holder does not listen for.
func (t *Ticket) AloneIn(names []string) bool {
	there, request := false, requestName(t.Entry.UUID)
	for _, name := range names {
		en, ok := ParseEntry(name)
		there = there || name == t.Entry.Name
		if ok && en.Name != t.Entry.Name || name == request && !t.Asked.node.Load() {
			return false
		}
	}
	return there
}

// Over reports whether nothing may be granted on the ticket any more.
func (t *Ticket) Over() bool { return t.state.Load() >= retiring }

// Replacing reports whether the node is being replaced: the servers may have granted to others already.
func (t *Ticket) Replacing() bool { return t.state.Load() == replacing }

// Retire announces the end of the ticket before a request that removes its node is sent. So its
// removal, of which an event may come before the answer, is not taken for a loss. The ticket ends when
// it is known what has become of the request: then removed is closed. A second call has no effect.
func (t *Ticket) Retire() (removed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.removed != nil {
		return t.removed
	}
	done := make(chan struct{})
	if t.state.Load() == over {
		close(done)
		return done
	}
	t.state.Store(retiring)
	t.removed = done
	return done
}

// SetReplacing says that t's node is about to be replaced, so that its removal
// is no loss; or, with no, that it was not replaced and will not be. Then
// events that came in between are made up for by another look at the node.
func (t *Ticket) SetReplacing(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case yes && t.state.Load() == live:
		t.state.Store(replacing)
	case !yes && t.state.Load() == replacing:
		t.state.Store(live)
		if t.missed {
			t.missed = false
			t.own.look()
		}
	}
}

// ShownNode is the path of the node as the session's user knows it.
func (t *Ticket) ShownNode() string {
	if hidden, ok := strings.CutSuffix(t.queue.Dir, t.queue.Shown); ok {
		return strings.TrimPrefix(t.Node, hidden) // it costs no memory
	}
	return t.queue.Shown + "/" + t.Entry.Name
}
