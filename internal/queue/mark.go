package queue

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// With a Delay nothing is granted for some time after a hold that was lost, to those that wait then or come later. The servers
// remove the entry of a holder that dies as they remove one that was released. So a holder leaves something that does not
// end with its session: a persistent node beside the entries, its mark. It is made after the queue has granted the entry,
// in a transaction that checks the entry, and before the caller learns of the grant. Only a release removes the mark, in
// the transaction that removes the entry, or before it. So of a hold that was lost the mark stays.
//
// A ticket that the queue has granted looks for marks of others. Nothing can hold beside it, so such a mark is that of a hold
// that was lost. It waits, and then makes its own mark in the transaction that removes the others.
//
//   - No mark is overlooked. A mark is made while its entry exists. A ticket that is granted has seen that entry gone, in an
//     event or in a listing, and its session never sees an older state again. So a listing made after that shows the mark. An
//     entry that was the only child of the directory right after it was made needs no listing: a mark is a child, too.
//   - No mark is made too late. A request that is delayed on its way checks the entry, which is gone after the hold.
//   - A mark may stay without a loss: if its maker dies before it knows that it holds, or while it releases. Then the
//     next grant waits for nothing. The other order would be a grant too early.
//
// The time counts from the moment when a ticket that was granted has seen that the entry is gone. It writes to the mark, which
// becomes version 1: the mark's mtime is that moment, by the clock of the servers. A contender that comes later compares
// its own node's ctime with that, so a waiter that is started again does not begin from zero, and one that only tries gets
// the lock some day. One that has seen it itself counts by its own clock.

// delayed is what a ticket keeps with a Delay.
type delayed struct {
	entered time.Time // when the answer came that the entry was made, or later
	once    bool      // do not wait, but fail with ErrNotAcquired

	// mark is that of the hold, from the moment when it may be there until it is decided that it is to be removed, or to
	// stay. The caller that swaps it for nil decides.
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

// markStart is how the name of a mark begins.
const markStart = "held-"

func markName(self Entry, delay time.Duration) string {
	return markStart + self.UUID + "-" + delay.String() + AsideEnd
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
// had another: the delay is its own. But a contender that knows no delays must not be granted before it is over.
func (q *Queue) agree(names []string) error {
	for _, n := range names {
		m, ok := parseMark(n)
		if !ok || m.delay == q.Delay {
			continue
		}
		if q.Delay == 0 {
			return errs.Misuse("the locks at this path have a lock delay of %v, this one has none; see node %s", m.delay, n)
		}
		for _, entry := range names {
			if strings.HasPrefix(entry, node.Prefix(m.uuid)) {
				return errs.Misuse("a lock delay of %v, where the holder has %v", q.Delay, m.delay)
			}
		}
	}
	return nil
}

// Unmark removes the mark of a hold that Close of its session releases. It does not wait for the answer; Close does, before it
// ends the session. The transaction checks the entry: if that is gone, the hold was lost.
func (t *Ticket) Unmark() {
	mark := t.delayed.mark.Swap(nil)
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

// delay is the wait of a ticket that the queue has granted until the delays of lost holds are over.
type delay struct {
	*Queue
	t     *Ticket
	epoch *zkconn.Epoch
	ends  map[string]time.Time // of each mark
}

// sitOut waits for that, with the ticket in hand, and makes its mark.
func (q *Queue) sitOut(ctx context.Context, t *Ticket) error {
	d := delay{q, t, t.Epoch, make(map[string]time.Time)}
	alone := t.sole
	for pace := (node.Pace{Free: 1}); ; {
		others, made, err := []holdMark(nil), false, error(nil)
		if !alone {
			others, made, err = d.list(ctx)
		}
		if err == nil && made {
			return nil // by a request whose answer was lost
		}
		if err == nil {
			err = d.wait(ctx, others)
		}
		if err == nil {
			err = d.epoch.Await(ctx)
		}
		if err == nil {
			err = d.replace(ctx, others)
		}
		if err == nil || !errors.Is(err, errList) && !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
			return err
		}
		alone = false
		if err := pace.Rest(ctx, d.epoch); err != nil {
			return err
		}
	}
}

// list lists the marks of others. made says that our own is there.
func (d *delay) list(ctx context.Context) (others []holdMark, made bool, err error) {
	names, _, err := d.epoch.Children(ctx, d.Dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, false, node.ErrGone
	}
	for _, n := range names {
		if m, ok := parseMark(n); ok && m.uuid != d.t.Entry.UUID {
			others = append(others, m)
		} else if ok {
			made = true
		}
	}
	return others, made, err
}

// wait waits until the delays of all these marks are over. If the ticket must not wait, it fails instead.
func (d *delay) wait(ctx context.Context, others []holdMark) error {
	var last time.Time
	for _, m := range others {
		if d.ends[m.name].IsZero() {
			left, err := d.left(ctx, m)
			if err != nil {
				return err
			}
			d.ends[m.name] = time.Now().Add(left)
		}
		if d.ends[m.name].After(last) {
			last = d.ends[m.name]
		}
	}
	wait := time.Until(last)
	switch {
	case wait <= 0:
		return nil
	case d.t.delayed.once:
		return errs.ErrNotAcquired
	}
	d.Log.Once("lock delay", d.Shown).Info("a hold was lost: waiting for the lock delay", "path", d.Shown, "after", wait)
	return d.epoch.Pause(ctx, wait)
}

// left is how much of the delay of a mark is left. If no ticket has seen before that its entry is gone, it begins now.
func (d *delay) left(ctx context.Context, m holdMark) (time.Duration, error) {
	path := d.Dir + "/" + m.name
	data, st, err := d.epoch.Get(ctx, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return 0, errList
	case err != nil:
		return 0, err
	case st.Version == 0:
		_, err := d.epoch.StartMulti(&zk.SetDataRequest{Path: path, Data: data, Version: 0}).Wait(ctx, d.epoch)
		if refusedAt(err, 0, zk.ErrBadVersion) || refusedAt(err, 0, zk.ErrNoNode) {
			err = errList // another request did it, perhaps one of ours; or it was removed externally
		}
		return m.delay, err
	}
	own, there, err := d.epoch.Exists(ctx, d.t.Node)
	switch {
	case err != nil:
		return 0, err
	case !there:
		return 0, node.ErrGone
	case own.Ctime <= st.Mtime: // t waited already, behind the one that has seen it and has gone since
		return m.delay, nil
	}
	passed := time.Duration(own.Ctime-st.Mtime)*time.Millisecond + time.Since(d.t.delayed.entered)
	return m.delay - passed, nil
}

// replace makes our own mark in the place of the others.
func (d *delay) replace(ctx context.Context, others []holdMark) error {
	mark := d.t.delayed.mark.Load()
	if mark == nil {
		// Close of the session waits until the mark is settled. Once the session is being ended, it could not be any more.
		settled, ok := d.epoch.Lasting()
		if !ok {
			return zkconn.ErrClosed
		}
		mark = &ownMark{d.Dir + "/" + markName(d.t.Entry, d.Delay), settled}
		d.t.delayed.mark.Store(mark)
	}
	ops := []any{&zk.CheckVersionRequest{Path: d.t.Node, Version: -1}}
	for _, m := range others {
		ops = append(ops, &zk.DeleteRequest{Path: d.Dir + "/" + m.name, Version: -1})
	}
	_, err := d.epoch.StartMulti(append(ops, &zk.CreateRequest{Path: mark.path, Data: d.plain(), Acl: d.ACL})...).Wait(ctx, d.epoch)
	refused := new(zkconn.TxnError)
	switch {
	case errors.Is(err, zk.ErrSessionExpired):
		return zkconn.ErrOver
	case !errors.As(err, &refused):
		return err
	case refusedAt(err, 0, zk.ErrNoNode):
		return node.ErrGone
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrNodeExists):
		return errList // one was removed externally; or this request was applied before
	}
	return refused.Err
}
