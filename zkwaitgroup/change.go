package zkwaitgroup

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Each transaction changes one record, and names its version. Every writer has a number of its own in a record. So if the
// answer is lost, or the servers refuse what may be a copy, a look at the record shows whether the change was made. The next
// one names the version that this look has seen: if the first is applied after all, the servers refuse the next.

// change is a transaction that changes one record.
type change struct {
	id      string // of the record
	own     *own   // nil if the record belongs to another WaitGroup
	old     *tally // nil if the change creates the record
	now     tally
	n       int   // how many members it adds, or says are done
	round   int64 // in which the record was read
	ops     []any
	refused error // nil if there was no answer
}

// creates reports whether the change creates the record. Then a round must exist.
func (c *change) creates() bool { return c.old == nil }

// removes reports whether the change deletes the record. A record from which others took stays until the round is over,
// so that they can find out whether their requests were applied.
func (c *change) removes() bool { return c.now.left() == 0 && len(c.now.Taken) == 0 }

// edit plans to add members to a record, or to say that as many of its members as are wanted are done. old is nil if there
// is no record yet.
func (g *WaitGroup) edit(e *zkconn.Epoch, b *batch, h *own, id string, old *tally, round int64) *change {
	c := &change{id: id, own: h, n: b.left, round: round}
	if old == nil {
		_ = json.Unmarshal(g.at.Owner(), &c.now) // this process's own data; what is missing in it stays empty
	} else {
		was := *old
		c.old, c.now = &was, was
		c.now.version++
	}
	switch {
	case b.add:
		c.now.N = sum(c.now.N, c.n)
	case h != nil:
		if c.n = min(c.n, old.left()); h.epoch != e {
			c.n = min(c.n, h.tally.left())
		}
		c.now.N -= c.n
	default:
		c.n = min(c.n, old.left())
		c.now.Taken = map[string]int{}
		maps.Copy(c.now.Taken, old.Taken)
		c.now.Taken[g.id] += c.n
	}
	data, lives := record.Encode(c.now), old != nil && old.left() > 0
	// Without a round no record may change. And the refusal of this check shows that the round was over: see wasMade.
	open := &zk.CheckVersionRequest{Path: g.alive(), Version: -1}
	switch path := g.record(id); {
	case old == nil:
		c.ops = []any{&zk.CreateRequest{Path: path, Data: data, Acl: g.at.ACL()}}
	case c.removes():
		c.ops = append([]any{open, &zk.DeleteRequest{Path: path, Version: old.version}}, b.turn.Check()...)
	default:
		c.ops = append([]any{open, &zk.SetDataRequest{Path: path, Data: data, Version: old.version}}, b.turn.Check()...)
	}
	// The node in alive exists exactly while the session lives and the record has members left.
	switch is := c.now.left() > 0; {
	case lives && !is:
		c.ops = append(c.ops, &zk.DeleteRequest{Path: g.life(id), Version: -1})
	case !lives && is:
		c.ops = append(c.ops, &zk.CreateRequest{Path: g.life(id), Acl: g.at.ACL(), Flags: zk.FlagEphemeral})
	case is:
		return c
	}
	// The Stat of alive in the answer shows how many are left at that very moment, and which round it is.
	c.ops = append(c.ops, &zk.SetDataRequest{Path: g.alive(), Version: -1})
	return c
}

// attempt makes one transaction, unless an earlier one was applied or nothing is left to write.
// node.ErrAgain means that another attempt is needed.
func (g *WaitGroup) attempt(ctx context.Context, e *zkconn.Epoch, b *batch) error {
	if err := b.turn.Take(ctx, e); err != nil { // before all that is read
		return err
	}
	if b.tried != nil {
		if made, err := g.settle(ctx, e, b); made || err != nil {
			return err
		}
	} else if b.prune(g); b.left == 0 {
		return nil
	}
	c, err := g.plan(ctx, e, b)
	if c == nil || err != nil {
		return err
	}
	before, begins := b.tried, false
	for pace := (node.Pace{Free: 2}); ; {
		b.tried, b.epoch = c, e // before it is sent: after that it may be applied at any time
		res, err := e.StartMulti(c.ops...).Wait(ctx, e)
		missing := record.RefusedAt(err, 0, zk.ErrNoNode)
		switch {
		case err == nil:
			return g.applied(ctx, e, b, res)
		case errors.Is(err, zkconn.ErrNotSent):
			b.tried = before
			return err
		case zkconn.Unknown(err) && c.creates():
			c.own.late = true
			return err
		case b.turn.IsOthers(c.ops, err): // what comes before that in the transaction was right, so no copy was applied
			b.tried = before
			return node.ErrAgain
		case !record.Conflict(err):
			return err
		case !missing || !c.creates():
			if errors.Is(err, zk.ErrNoNode) && c.creates() {
				return errRemoved
			}
			c.refused = err
			b.turn.Refused()
			return node.ErrAgain
		}
		b.tried = before
		if err := pace.Rest(ctx, e); err != nil { // not after the directory is made: it is empty then, and may be removed
			return err
		}
		if begins { // the directory of the group is missing, too
			if err := node.MakeDir(ctx, e, g.base(), g.at.ACL()); err != nil {
				return err
			}
		} else {
			c.ops = append(g.beginning(), c.ops...)
		}
		begins = true
	}
}

// applied records that the newest try was applied, and ends the round if no living member is left. res is the answer, nil
// if it was lost.
func (g *WaitGroup) applied(ctx context.Context, e *zkconn.Epoch, b *batch, res []zk.MultiResponse) error {
	c, h := b.tried, b.tried.own
	b.tried, b.left = nil, b.left-c.n
	alive := zk.Stat{}
	if n := len(res); n > 0 && res[n-1].Stat != nil { // the last operation wrote to alive: see edit
		alive = *res[n-1].Stat
	}
	if c.creates() {
		h.round, g.mine = alive.Czxid, append(g.mine, h)
	}
	switch {
	case h == nil:
	case h.epoch != e:
		if h.tally.N -= c.n; h.tally.left() == 0 {
			g.drop(h)
		}
	case c.removes():
		g.drop(h)
	default:
		if h.tally = c.now; c.now.left() > 0 && res != nil {
			g.watch(h)
		}
	}
	if c.now.left() > 0 || alive.NumChildren > 0 {
		return nil
	}
	b.turn.Leave() // before end: the servers do not remove a round in which there is a turn
	return g.end(ctx, e, c.removes() && alive.Czxid != 0)
}

// settle finds out whether the newest try was made: its answer was lost, or the servers refused it, perhaps because it
// had been applied before.
func (g *WaitGroup) settle(ctx context.Context, e *zkconn.Epoch, b *batch) (made bool, err error) {
	c := b.tried
	t, alive, round, err := g.look(ctx, e, c.id)
	if err != nil {
		return false, err
	}
	if t == nil && c.own == nil && round == c.round {
		// Another process may have removed the record before more members were added. Then no member was alive after the
		// record was read: so the round was over.
		dir, there, err := e.Exists(ctx, g.round())
		if err != nil {
			return false, err
		}
		if !there || c.outlivedBy(dir.Mzxid) {
			round = 0
		}
	}
	if made = c.wasMade(g.id, t, round); made {
		err = g.applied(ctx, e, b, nil)
	}
	if c.own != nil && c.own == g.own(e) {
		g.saw(c.own, t, alive, round)
	}
	return made, err
}

// wasMade decides whether a change of the WaitGroup by was applied. t is the record, nil if there is none, and round is
// the present round, 0 if there is none, or if it was over since the record was read.
//
// The WaitGroup to which a record belongs writes it, and others write only their own numbers in it. So while the record
// exists, the number that the change was to write shows it. If the record is gone, its own WaitGroup removed it, or the
// process that ended the round.
func (c *change) wasMade(by string, t *tally, round int64) bool {
	switch {
	case t != nil && c.own == nil:
		return t.Taken[by] == c.now.Taken[by]
	case t != nil:
		return t.N == c.now.N
	case c.creates(), c.now.N > c.old.N: // an Add: its members would keep the round from being over
		return false
	case round != 0 && round == c.round:
		// Its own WaitGroup removed it, or another process before more members were added: see settle. Then a Done of our own
		// record was applied, or does not matter any more.
		return c.own != nil
	case c.own == nil: // a record from which others took stays until the round is over; then the change does not matter any more
		return true
	}
	// The round is over. A Done was applied, or does not matter any more, with one exception: the servers refused it
	// because there was no such round, or no such record in a new round. Then others had taken all members. If the
	// request had been applied before, the servers would have refused its copy for another reason.
	return !errors.Is(c.refused, zk.ErrNoNode) || round == 0 && !record.RefusedAt(c.refused, 0, zk.ErrNoNode)
}

// outlivedBy reports whether the round was over since the record was read. removed is the zxid of the last removal of records
// before the round, or of the beginning of the round.
func (c *change) outlivedBy(removed int64) bool { return removed > c.old.written }

// own is the record to which members are added in this session, nil if there is none.
func (g *WaitGroup) own(e *zkconn.Epoch) *own {
	if n := len(g.mine); n > 0 && g.mine[n-1].epoch == e && !g.mine[n-1].dead {
		return g.mine[n-1]
	}
	return nil
}

// drop forgets a record whose members are done or were reported. A request that creates a record may wait in the queue of
// a server whose connection was lost, and be applied when the record is gone again. So the session looks for it.
func (g *WaitGroup) drop(h *own) {
	g.mine = slices.DeleteFunc(g.mine, func(m *own) bool { return m == h })
	if h.late {
		h.epoch.AmbiguousPair(g.alive(), h.id, g.record(h.id), h.epoch.Connection())
	}
}

// watch watches the record's node in alive. Without the watch this process might send a Done long after others had said
// that all members are done and the round was over. If the answer to that Done were lost, nothing would show whether it
// was applied in that round or not.
func (g *WaitGroup) watch(h *own) {
	if !h.sure.Swap(true) {
		h.epoch.WatchAll([]string{g.life(h.id)}, func(string, zkconn.Event) { h.sure.Store(false) }, nil)
	}
}

// saw records what a look at the record of this session has shown; t is nil if it is gone.
func (g *WaitGroup) saw(h *own, t *tally, alive []string, round int64) {
	switch {
	case t == nil:
		g.drop(h)
		return
	case t.left() == 0:
	case slices.Contains(alive, h.id):
		g.watch(h)
	default: // deleted externally; if others have taken the members meanwhile, excuse finds none
		h.dead = true
	}
	h.tally, h.round = *t, round
}
