package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// With a Delay nobody is granted for some time after a hold that was lost, whoever waits then or comes later. The servers
// remove the entry of a holder that dies as they remove one that was released. So a holder leaves something that does not
// end with its session: a persistent node beside the entries, its mark. It is made after the queue has granted the entry,
// in a transaction that checks the entry, and before the caller is told of the grant. Only a release removes the mark, in
// the transaction that removes the entry, or before it (see the orders below). So of a hold that was lost the mark stays.
//
// Whoever is granted by the queue looks for marks of others. Nobody can hold beside it, so such a mark is that of a hold
// that was lost. It waits, and then makes its own mark in the transaction that removes the others.
//
//   - No mark is overlooked. A mark is made while its entry exists. Who is granted has seen that entry gone, in an event or
//     in a listing, and its session never sees an older state again. So a listing made after that shows the mark. An
//     entry that was the only child of the directory right after it was made needs no listing: a mark is a child, too.
//   - No mark is made too late. A request that is delayed on its way checks the entry, which is gone after the hold.
//   - A mark may stay without a loss: if its maker dies before it knows that it holds, or while it releases. Then the
//     next grant waits for nothing. The other order would be a grant too early.
//
// # How long
//
// The time counts from the moment when somebody who was granted has seen that the entry is gone. It writes to the mark, which
// becomes version 1: the mark's mtime is that moment, by the clock of the servers. A contender that comes later compares
// its own node's ctime with that, so a waiter that is started again does not begin from zero, and one that only tries gets
// the lock some day. Who has seen it itself counts by its own clock.

// claim is what a ticket needs to be granted with a Delay.
type claim struct {
	entered time.Time // when the answer came that the entry was made, or later
	once    bool      // do not wait, but fail with ErrNotAcquired

	// mark is that of the hold, from the moment when it may be there until somebody is to remove it, or it is to stay. Whoever
	// swaps it for nil decides on that.
	mark atomic.Pointer[ownMark]
}

// ownMark is a mark that the ticket may have made. Its methods do nothing for nil, which is no mark.
type ownMark struct {
	path    string
	settled func() // ends what makes Close of the session wait: see zkconn.Epoch.Lasting
}

func (m *ownMark) settle() {
	if m != nil {
		m.settled()
	}
}

func (m *ownMark) at() string {
	if m == nil {
		return ""
	}
	return m.path
}

// removal is how a transaction that releases the hold removes the mark.
func (m *ownMark) removal() []any {
	if m == nil {
		return nil
	}
	return []any{&zk.DeleteRequest{Path: m.path, Version: -1}}
}

// holdMark is what the name of a mark tells.
type holdMark struct {
	name, uuid string // uuid is that of the entry
	delay      time.Duration
}

// The name of a node beside the entries ends with AsideEnd. Other libraries read what follows the last "lock-" as the number
// of a contender: go-zookeeper fails if there is none, and nobody waits for the last number that there is.
const (
	markStart = "held-"
	AsideEnd  = "_lock-2147483647"
)

func (t *Ticket) ownMark() string {
	return markStart + t.Entry.UUID + "-" + t.queue.Delay.String() + AsideEnd
}

func parseMark(name string) (m holdMark, ok bool) {
	rest, held := strings.CutPrefix(name, markStart)
	rest, ended := strings.CutSuffix(rest, AsideEnd)
	if !held || !ended {
		return holdMark{}, false
	}
	m.name = name
	m.uuid, rest = CutUUID(rest, uuidLen)
	d, err := time.ParseDuration(strings.TrimPrefix(rest, "-"))
	if m.uuid == "" || err != nil || d <= 0 || rest != "-"+d.String() {
		return holdMark{}, false
	}
	m.delay = d
	return m, true
}

// DelayIn is the lock delay that a mark among these names tells; 0 if there is none.
func DelayIn(names []string) time.Duration {
	for _, n := range names {
		if m, ok := parseMark(n); ok {
			return m.delay
		}
	}
	return 0
}

// agree returns an error if the names in the directory show that a contender has another Delay. One that was lost may have
// had another: the delay is its own. But whoever does not know of delays at all must not be granted before it is over.
func (q *Queue) agree(names []string) error {
	for _, n := range names {
		m, ok := parseMark(n)
		if !ok || m.delay == q.Delay {
			continue
		}
		if q.Delay == 0 {
			return fmt.Errorf("%w: the locks at this path have a lock delay of %v, this one has none; see node %s", errs.ErrMisuse, m.delay, n)
		}
		if m.heldIn(names) {
			return fmt.Errorf("%w: a lock delay of %v, where the holder has %v", errs.ErrMisuse, q.Delay, m.delay)
		}
	}
	return nil
}

// heldIn reports whether the entry of the mark is among the names.
func (m holdMark) heldIn(names []string) bool {
	for _, n := range names {
		if strings.HasPrefix(n, node.Prefix(m.uuid)) {
			return true
		}
	}
	return false
}

// Unmark removes the mark of a hold that Close of its session releases. It does not wait for the answer; Close does, before it
// ends the session. The transaction checks the entry: if that is gone, the hold was lost.
func (t *Ticket) Unmark() {
	mark := t.claim.mark.Swap(nil)
	if mark == nil {
		return
	}
	ops := append([]any{&zk.CheckVersionRequest{Path: t.Node, Version: -1}}, mark.removal()...)
	sent := t.Epoch.StartMulti(ops...)
	if !t.Epoch.Go(func() {
		defer mark.settle()
		ctx := context.Background() // the epoch ends it
		for pace := (node.Pace{Free: 1}); ; sent = t.Epoch.StartMulti(ops...) {
			// To repeat it is harmless: if it was applied, the mark is not there, and nobody makes it again.
			_, err := sent.Wait(ctx, t.Epoch)
			if !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
				return
			}
			if t.Epoch.Await(ctx) != nil || pace.Rest(ctx, t.Epoch) != nil {
				return
			}
		}
	}) {
		mark.settle()
	}
}

// mark ends the delay that others have left, and makes the mark of t, which the queue has granted. It waits as long as that takes.
func (t *Ticket) mark(ctx context.Context) error {
	over := make(map[string]time.Time) // when the delay of each mark ends
	for pace := (node.Pace{Free: 1}); ; {
		others, made, err := t.marks(ctx)
		if err == nil && made {
			return nil // by a request whose answer was lost
		}
		if err == nil {
			err = t.sitOut(ctx, others, over)
		}
		if err == nil {
			err = t.Epoch.Await(ctx)
		}
		if err == nil {
			err = t.makeMark(ctx, others)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errList), zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			t.sole = false
		default:
			return err
		}
		if err := pace.Rest(ctx, t.Epoch); err != nil {
			return err
		}
	}
}

// marks lists the marks of others. made says that our own is there.
func (t *Ticket) marks(ctx context.Context) (others []holdMark, made bool, err error) {
	if t.sole {
		return nil, false, nil
	}
	names, _, err := t.Epoch.Children(ctx, t.queue.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, false, ErrGone
	}
	for _, n := range names {
		if m, ok := parseMark(n); ok && m.uuid != t.Entry.UUID {
			others = append(others, m)
		} else if ok {
			made = true
		}
	}
	return others, made, err
}

// makeMark makes the mark of t in the place of the others.
func (t *Ticket) makeMark(ctx context.Context, others []holdMark) error {
	q, mark := t.queue, t.claim.mark.Load()
	if mark == nil {
		// Close of the session waits until the mark is settled. Once the session is being ended, it could not be any more.
		settled, ok := t.Epoch.Lasting()
		if !ok {
			return zkconn.ErrClosed
		}
		mark = &ownMark{q.Dir + "/" + t.ownMark(), settled}
		t.claim.mark.Store(mark)
	}
	ops := []any{&zk.CheckVersionRequest{Path: t.Node, Version: -1}}
	for _, m := range others {
		ops = append(ops, &zk.DeleteRequest{Path: q.Dir + "/" + m.name, Version: -1})
	}
	_, err := t.Epoch.StartMulti(append(ops, &zk.CreateRequest{Path: mark.path, Data: q.Data(), Acl: q.ACL})...).Wait(ctx, t.Epoch)
	refused := new(zkconn.TxnError)
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return zkconn.ErrOver
	case !errors.As(err, &refused):
		return err
	case refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
		return ErrGone
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
		return errList // somebody removed one by hand; or this request was applied before
	}
	return refused.Err
}

// sitOut waits until the delays of all these marks are over. If t must not wait, it fails instead.
func (t *Ticket) sitOut(ctx context.Context, others []holdMark, over map[string]time.Time) error {
	var last time.Time
	for _, m := range others {
		if over[m.name].IsZero() {
			left, err := t.left(ctx, m)
			if err != nil {
				return err
			}
			over[m.name] = time.Now().Add(left)
		}
		if over[m.name].After(last) {
			last = over[m.name]
		}
	}
	wait := time.Until(last)
	switch {
	case wait <= 0:
		return nil
	case t.claim.once:
		return errs.ErrNotAcquired
	}
	t.queue.Logger.Info("a hold was lost: waiting for the lock delay", "path", t.queue.Shown, "delay", wait)
	return t.Epoch.Pause(ctx, wait)
}

// left is how much of the delay of a mark is left. If nobody has seen before that its entry is gone, it begins now.
func (t *Ticket) left(ctx context.Context, m holdMark) (time.Duration, error) {
	path := t.queue.Dir + "/" + m.name
	data, st, err := t.Epoch.Get(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, errList
	case err != nil:
		return 0, err
	case st.Version == 0:
		_, err := t.Epoch.StartMulti(&zk.SetDataRequest{Path: path, Data: data, Version: 0}).Wait(ctx, t.Epoch)
		refused := new(zkconn.TxnError)
		if errors.As(err, &refused) && cmp.Or(errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode)) {
			err = errList // another request did it, perhaps one of ours; or somebody removed it by hand
		}
		return m.delay, err
	}
	own, there, err := t.Epoch.Exists(ctx, t.Node)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, ErrGone
	case own.Ctime <= st.Mtime: // t waited already, behind the one that has seen it and has gone since
		return m.delay, nil
	}
	passed := time.Duration(own.Ctime-st.Mtime)*time.Millisecond + time.Since(t.claim.entered)
	return m.delay - passed, nil
}
