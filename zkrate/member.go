package zkrate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// member is a limiter in one session.
type member struct {
	*Limiter
	e     *zkconn.Epoch
	id    string // of its node, and of its share
	first int64  // the tokens of a record without data

	joined bool

	mu       sync.Mutex // for Finish: the loop reads these without it
	table    *table     // the record, as it was read or written last; nil before the process has joined
	version  int32      // of the record then
	finished bool       // Finish has given the tokens back
	names    []string

	news    news          // guarded by Limiter.mu
	wake    chan struct{} // has a value when there may be news
	stale   news          // what the next look is to read; of the loop
	watches [2]*zkconn.Watch

	act    *rate.Limiter // of the requests of this process
	due    time.Time     // when it reacts to news; zero if there are none
	ticked time.Time
	used   float64   // tokens a second, smoothed over some periods
	turn   time.Time // when it began to have what it needs; zero while it has less
	served bool      // a call had tokens since
}

// news is what has happened since the last look.
type news struct{ record, processes, demanded bool }

func newMember(l *Limiter, e *zkconn.Epoch, first int64) *member {
	return &member{
		Limiter: l, e: e, id: node.NewUUID(), first: first, wake: make(chan struct{}, 1), stale: news{record: true, processes: true},
		act: rate.NewLimiter(rate.Every(leastPeriod), 3), ticked: time.Now(),
	}
}

// errAgain means that nodes were removed externally: the process has no share any more.
var errAgain = errors.New("zkrate: nodes were removed externally")

var errRemoved = errs.Broken("the rate limiter", `some of its nodes were removed externally; "menagerie reset" removes the others, and its next user creates it again`)

// note records news. It does not block. It does not take mu: the bucket calls it under its own.
func (m *member) note(what *bool) {
	m.Limiter.mu.Lock()
	*what = true
	m.Limiter.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// listen adds the news to what is stale, and reports whether there were any, and whether the process needs more.
func (m *member) listen() (changed, demanded bool) {
	m.Limiter.mu.Lock()
	defer m.Limiter.mu.Unlock()
	now := m.news
	m.news = news{}
	m.stale.record, m.stale.processes = m.stale.record || now.record, m.stale.processes || now.processes
	return now.record || now.processes, now.demanded
}

// blind ends the watches. The servers drop them with their next event.
func (m *member) blind() {
	for _, w := range m.watches {
		if w != nil {
			w.Stop()
		}
	}
}

// look reads what has changed: the record, and which processes are there. Watches report the next changes. The list must not be older
// than the record: then a share whose node it does not have is that of a session that has ended. A list that has all shares of the
// record is as good as a new one.
func (m *member) look(ctx context.Context) error {
	m.listen()
	now := m.stale
	m.stale = news{}
	if now.record {
		if err := m.read(ctx); err != nil {
			return err
		}
	}
	if now.processes || !m.table.within(m.names) {
		if err := m.list(ctx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.bury(m.names)
	if m.joined && m.table.Shares[m.id] == nil {
		return errAgain
	}
	return nil
}

// list lists the processes.
func (m *member) list(ctx context.Context) error {
	return unlessRemoved(record.Insist(ctx, m.e, func() error {
		w, l, err := m.e.WatchChildren(ctx, m.processes(), func(zkconn.Event) { m.note(&m.news.processes) })
		if err == nil {
			if m.watches[1] != nil {
				m.watches[1].Stop()
			}
			m.watches[1], m.names = w, l.Names
		}
		return err
	}))
}

// read reads the record.
func (m *member) read(ctx context.Context) error {
	return unlessRemoved(record.Insist(ctx, m.e, func() error {
		w, c, err := m.e.WatchData(ctx, m.shares(), func(zkconn.Event) { m.note(&m.news.record) })
		if err != nil {
			return err
		}
		m.watches[0] = w
		t, err := parse(c.Data, int64(m.burst)*token, m.first)
		if err != nil {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.table, m.version = t, c.Stat.Version
		return nil
	}))
}

// unlessRemoved is errAgain for nodes that do not exist.
func unlessRemoved(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errAgain
	}
	return err
}

// enter joins: one transaction creates the node of the process, and gives it what is free of its share.
func (m *member) enter(ctx context.Context) error {
	for pace := (node.Pace{Free: 1}); ; {
		if err := m.look(ctx); err != nil {
			return err
		}
		d := m.demand(time.Now(), false)
		d.short, d.idle, d.need = true, false, max(d.need, min(token, int64(m.burst)*token))
		t := m.table.clone()
		t.Shares[m.id] = new(share)
		next, _ := t.next(m.id, d)
		got := t.change(m.id, next, 0)
		_, err := node.RepeatTransaction(ctx, m.e,
			&zk.CreateRequest{Path: m.process(m.id), Data: m.at.Owner(), Acl: m.at.ACL(), Flags: zk.FlagEphemeral},
			&zk.SetDataRequest{Path: m.shares(), Data: t.encode(), Version: m.version})
		switch {
		case err == nil, record.RefusedAt(err, 0, zk.ErrNodeExists): // an earlier copy of the request was applied
			m.wrote(t, func() {
				m.bucket.begin(m.e, false, func() { m.note(&m.news.demanded) }, m.rateOf(next.Rate), next.Burst, got)
			})
			m.joined, m.stale.processes = true, true
			return m.look(ctx)
		case !record.RefusedAt(err, 1, zk.ErrBadVersion):
			return unlessRemoved(err)
		}
		m.stale.record = true
		if err := pace.Rest(ctx, m.e); err != nil {
			return err
		}
	}
}

// wrote notes that the record is t, and has fill put what that gives into the bucket. Finish sees both or none of them: tokens that
// a call can use are in the record that it knows.
func (m *member) wrote(t *table, fill func()) {
	m.mu.Lock()
	m.table, m.version = t, zkconn.NextVersion(m.version)
	fill()
	m.mu.Unlock()
	m.stale.record = true // its watch has reported this change, and is to be set again
}

// demand is what the process needs. A tick begins to count again.
func (m *member) demand(now time.Time, tick bool) demand {
	r := m.bucket.glance(now, m.period(), tick)
	since := now.Sub(m.ticked).Seconds()
	used := m.used
	if since > 0 {
		used = max(used, r.tokens/since)
	}
	if tick {
		m.used, m.ticked = (m.used+r.tokens/since)/2, now
	}
	m.served = m.served || r.served
	d := demand{short: r.short, idle: r.idle, full: r.full, need: int64(r.need) * token}
	if m.limit > 0 {
		d.rate = int64(min(used/float64(m.limit), 1) * wholeRate)
	}
	d.served = m.served && !m.turn.IsZero() && now.Sub(m.turn) >= leastPeriod
	return d
}

func (m *member) period() time.Duration {
	if m.table == nil { // it has not joined
		return leastPeriod
	}
	return period(len(m.table.Shares))
}

// live keeps the share right until the limiter was not used for some time. While nothing changes it makes no request.
func (m *member) live(ctx context.Context) error {
	for {
		if err := m.await(ctx); err != nil {
			return err
		}
		now := time.Now()
		tick := now.Sub(m.ticked) >= m.period()
		if react := m.reacts(now); !react && !tick {
			continue
		}
		if left, err := m.step(ctx, now, m.demand(now, tick)); err != nil || left {
			return err
		}
	}
}

// await waits for news, for the time to react to earlier ones, or for the next tick.
func (m *member) await(ctx context.Context) error {
	next := m.ticked.Add(m.period())
	if !m.due.IsZero() && m.due.Before(next) {
		next = m.due
	}
	t := time.NewTimer(time.Until(next))
	defer t.Stop()
	select {
	case <-m.wake:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-m.e.Over():
		return zkconn.ErrOver
	}
	return nil
}

// reacts reports whether it is time to react to news. Processes react to a change one after the other, in the order of their turns:
// so those that have waited longest come first, and they do not refuse each other's changes.
func (m *member) reacts(now time.Time) bool {
	changed, demanded := m.listen()
	switch {
	case demanded:
		m.due = now
	case changed && m.due.IsZero():
		m.due = now.Add(time.Duration(m.table.place(m.id)) * spacing)
	}
	return !m.due.IsZero() && !now.Before(m.due)
}

// allowed reports whether the process may make requests now. Otherwise it sets the time when it may.
func (m *member) allowed(now time.Time) bool {
	m.act.SetLimitAt(now, rate.Every(m.period()))
	if m.act.AllowN(now, 1) || m.table.ahead(m.id) < nearest {
		return true
	}
	m.due = now.Add(time.Duration((1-m.act.TokensAt(now))*float64(m.period())) + 1)
	return false
}

// step does what there is to do. left means that the process has given everything up.
func (m *member) step(ctx context.Context, now time.Time, d demand) (left bool, err error) {
	old := m.stale.record || m.stale.processes
	if old && now.Before(m.due) {
		return false, nil // it reacts later
	}
	m.due = time.Time{}
	if !old {
		if _, _, worth := m.next(now, d); !worth {
			return false, nil
		}
	}
	if !m.allowed(now) {
		return false, nil
	}
	for pace := (node.Pace{Free: 1}); ; {
		if err := m.look(ctx); err != nil {
			return false, err
		}
		next, leaves, worth := m.next(now, d)
		if !worth {
			return false, nil
		}
		if leaves {
			left, err = m.leave(ctx)
		} else {
			left, err = m.write(ctx, next)
		}
		if left && !leaves {
			return false, m.look(ctx) // and watch again
		}
		if err != nil || left {
			return left, err
		}
		if err := pace.Rest(ctx, m.e); err != nil {
			return false, err
		}
	}
}

// next is what the process should write for itself, and whether it leaves instead: if it was not used for some time, or has nothing
// and needs nothing. worth means that one of them is to be done.
func (m *member) next(now time.Time, d demand) (next share, leaves, worth bool) {
	m.serve(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	next, worth = m.table.next(m.id, d)
	leaves = d.full && m.bucket.unused(now) >= unusedFor || d.idle && next.Burst == 0
	return next, leaves, worth || leaves
}

// serve notes when the turn of the process has begun: since then its bucket is as large as it needs.
func (m *member) serve(d demand) {
	switch me := m.table.Shares[m.id]; {
	case me.Burst < max(d.need, min(token, m.table.burst)):
		m.turn, m.served = time.Time{}, false
	case m.turn.IsZero():
		m.turn, m.served = time.Now(), false
	}
}

// write changes the share of the process. It first lowers the bucket to what the record will say, and raises it once the servers have
// the change. So at each instant the buckets of all processes, and what the record has for no process, are together at most the whole.
// done is false if the record has changed since it was read.
func (m *member) write(ctx context.Context, next share) (done bool, err error) {
	was := *m.table.Shares[m.id]
	next.Write = was.Write + 1
	given := m.bucket.shrink(m.rateOf(next.Rate), next.Burst)
	t := m.table.clone()
	got := t.change(m.id, next, given)
	_, err = node.RepeatTransaction(ctx, m.e,
		&zk.CheckVersionRequest{Path: m.process(m.id), Version: -1},
		&zk.SetDataRequest{Path: m.shares(), Data: t.encode(), Version: m.version})
	switch {
	case err == nil:
		m.wrote(t, func() { m.bucket.become(m.rateOf(next.Rate), next.Burst, got) })
	case record.RefusedAt(err, 1, zk.ErrBadVersion):
		// Perhaps an earlier copy of the request was applied. No copy can be applied any more: the version has passed.
		m.stale.record = true
		if err := m.look(ctx); err != nil {
			return false, err
		}
		if m.table.Shares[m.id].Write != next.Write {
			m.bucket.become(m.rateOf(was.Rate), was.Burst, given)
			return false, nil
		}
		m.bucket.become(m.rateOf(next.Rate), next.Burst, got)
	default:
		return false, unlessRemoved(err)
	}
	if m.due = (time.Time{}); next.Turn != was.Turn {
		m.turn, m.served = time.Time{}, false
	}
	return true, nil
}

// without is the record without this process, and with the tokens of its bucket, which are given.
func (m *member) without(given int64) (ops []any) {
	t := m.table.clone()
	t.Level += given
	delete(t.Shares, m.id)
	return []any{
		&zk.DeleteRequest{Path: m.process(m.id), Version: -1},
		&zk.SetDataRequest{Path: m.shares(), Data: t.encode(), Version: m.version},
	}
}

// leave gives everything up, with the tokens. done is false if the record has changed since it was read.
func (m *member) leave(ctx context.Context) (done bool, err error) {
	me, given := *m.table.Shares[m.id], m.bucket.empty()
	_, err = node.RepeatTransaction(ctx, m.e, m.without(given)...)
	switch {
	case record.RefusedAt(err, 0, zk.ErrNoNode): // an earlier copy of the request was applied
		return true, nil
	case record.RefusedAt(err, 1, zk.ErrBadVersion):
		m.bucket.become(m.rateOf(me.Rate), me.Burst, given)
		m.stale.record = true
		return false, nil
	}
	return err == nil, unlessRemoved(err)
}

// giveWait is how long Close waits for the answer, when all holds have ended.
const giveWait = 100 * time.Millisecond

// Finish is called by Close of the session, before that ends. The tokens go back with the share, unless another process has changed
// the record at the same time, or no server answers soon: then they are lost. The run ends with Close, too, and whichever of
// both is first gives them back.
func (m *member) Finish(error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	given := m.bucket.empty()
	m.bucket.end(m.e)
	if m.finished || m.table == nil || m.table.Shares[m.id] == nil {
		return false
	}
	m.finished = true
	call := m.e.StartMulti(m.without(given)...)
	m.at.Session.AfterHolds(func() { // the end of the connection must not overtake it
		ctx, cancel := context.WithTimeout(context.Background(), giveWait)
		defer cancel()
		_, _ = call.Wait(ctx, m.e)
	})
	return true
}
