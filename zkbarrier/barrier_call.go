package zkbarrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Await arrives, and waits until all parties have arrived. It returns the index of this party's arrival as in
// Java: Parties()-1 for the first, 0 for the last, -1 with an error. Parties beyond the number are in the
// next generation.
//
// If ctx ends after the arrival, or the session is lost, the barrier breaks: a [BrokenError]. A complete
// generation never counts as broken. After a lost session and more than 32 generations it may be unknown
// whether the party was counted: zksync.ErrSessionExpired.
func (b *Barrier) Await(ctx context.Context) (index int, err error) {
	return newBarrierCall(b.made()).await(ctx)
}

// barrierCall is one call of Await: a party, over all sessions in which it tries to arrive. In each session it
// goes from step to step until it is finished.
type barrierCall struct {
	b       *Barrier
	uuid    string // in the names of all its nodes, so that the reaper finds them
	attempt string // names the party in all its nodes; the first digits of the uuid

	turn  *gate.Turn   // taken after it came too late for some generations
	pace  node.Pace    // between attempts to arrive or to break the generation
	st    barrierState // of the generation in which the party is, or tries to be
	tries int          // the requests for its node in that generation that may have been applied, in any session
	died  bool         // some of those requests were made in a session that is over
	node  *node.Node   // its node; nil until it is known in the current session
	place int          // in the order of arrival, from the newest list; before that, as if no request had been applied twice

	extra  bool      // the generation has enough parties without this one, which waits for the next generation
	there  gathering // the parties that this one lets leave, the members first
	acting bool      // the action runs
	acted  bool      // the action has run, for these members

	failure error // the error of an action that ended because the generation was broken or the session was lost

	neighbor string       // the node of the party that this one watches
	owner    zksync.Owner // of that node
	breach   breach       // why this party breaks the generation, with the parties that had arrived

	index int // the result of Await
	err   error
}

// step is what a call does next. It returns the step after it; nil means that the call is finished.
type step func(context.Context, *zkconn.Epoch) (step, error)

// newBarrierCall begins a call. The first two repetitions are without a pause, because usually only the state was old.
func newBarrierCall(b *Barrier) *barrierCall {
	uuid := node.NewUUID()
	return &barrierCall{b: b, uuid: uuid, attempt: attemptOf(uuid), turn: b.turn(), pace: node.Pace{Free: 2}}
}

// await runs the call, in as many sessions as it takes, and returns its result.
func (c *barrierCall) await(ctx context.Context) (index int, err error) {
	defer c.turn.Leave()
	if err := c.b.at.Run(ctx, "", c.run); err != nil {
		return -1, c.b.at.Named("await", record.Saying(err, c.breach.present(c.b.parties)))
	}
	return c.index, c.b.at.Named("await", c.err)
}

// run is the call in one session. In a later session it finds out first what became of the node that it may have made
// before.
func (c *barrierCall) run(ctx context.Context, e *zkconn.Epoch) error {
	c.node = nil
	next := c.arrive
	if c.tries > 0 {
		c.died = true
		next = c.nodeGone
	}
	var err error
	for next != nil && err == nil {
		next, err = next(ctx, e)
	}
	switch {
	// All have left. The transaction that ended the generation has deleted the party's node.
	case err == nil && c.err == nil:
		return nil
	// The session is over, and the call is run again in the next one.
	case errors.Is(err, zkconn.ErrOver):
		return err
	// The generation is broken, or it is not known how it ended. If the party still has a node, it must go.
	case err == nil:
		c.leave(e, "")
		return nil
	}
	// ctx has ended, or the servers refuse. If all had arrived before this party gave up, the call succeeds.
	if index := c.leave(e, GaveUp); index >= 0 {
		_, err = c.finish(index, nil)
	}
	return err
}

// finish ends the call with a result. An error that it gets is the result of the generation; an error that a step
// returns, such as the end of the session, is not.
func (c *barrierCall) finish(index int, err error) (step, error) {
	c.index, c.err = index, err
	return nil, nil
}

// fail ends the call because the generation is broken.
func (c *barrierCall) fail(why breach) (step, error) {
	err := error(why.error(c.b.parties))
	if c.failure != nil {
		err = fmt.Errorf("%w: %w", err, c.failure)
	}
	return c.finish(-1, err)
}

// pass ends the call because all have arrived, this party at that place.
func (c *barrierCall) pass(place int) (step, error) { return c.finish(c.b.parties-1-place, nil) }

// begin forgets all that was true of another generation only.
func (c *barrierCall) begin(e *zkconn.Epoch, st barrierState) {
	if c.tries > 1 {
		c.unwanted(e)
	}
	*c = barrierCall{b: c.b, uuid: c.uuid, attempt: c.attempt, turn: c.turn, pace: c.pace, st: st}
}

// paced is next after a pause.
func (c *barrierCall) paced(next step) step {
	return func(ctx context.Context, e *zkconn.Epoch) (step, error) { return next, c.pace.Rest(ctx, e) }
}

// settle finds out what became of the generation. If the generation is still open, the call continues with next.
func (c *barrierCall) settle(ctx context.Context, e *zkconn.Epoch, next step) (step, error) {
	how, err := c.b.recorded(ctx, e, c.st)
	if how == nil && err == nil {
		var now barrierState
		now, err = c.b.learn(ctx, e)
		switch {
		case err != nil:
			return nil, err
		case now.Generation < c.st.Generation: // they only count up: the barrier was deleted externally, and made again
			return c.fail(breach{Why: Removed})
		case now.Generation == c.st.Generation && !now.Broken:
			c.st = now
			return next, nil
		}
		// The generation has ended. The transaction that ended it wrote the record, and this server has caught up with the
		// leader. So if there is still no record, it was removed because it was old; or externally, while the barrier is broken.
		how, err = c.b.recorded(ctx, e, c.st)
		if how == nil && err == nil && now == c.st {
			return c.fail(breach{})
		}
	}
	switch {
	case err != nil:
		return nil, err
	case how == nil:
		return c.byNode(ctx, e)
	case how.Broken:
		return c.fail(how.breach)
	}
	if place := slices.Index(how.Passed, c.attempt); place >= 0 {
		return c.pass(place)
	}
	c.turn.Refused() // all have left without this party: it came too late
	c.begin(e, barrierState{})
	return c.arrive, nil
}

// byNode finds out how a generation ended whose record is gone, by the party's own node. Only the party itself and the
// transaction in which all leave delete it. So if the node is still there, the generation was broken.
func (c *barrierCall) byNode(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.node == nil {
		return c.finish(-1, fmt.Errorf("%w, and what came of the barrier is too long ago to be known", zksync.ErrSessionExpired))
	}
	_, there, err := e.Exists(ctx, c.node.Path)
	switch {
	case err != nil:
		return nil, err
	case there:
		return c.fail(breach{})
	case c.place < c.b.parties && !c.extra:
		return c.pass(c.place)
	}
	c.begin(e, barrierState{})
	return c.arrive, nil
}

// arrive makes the party's node in the generation that is open, as far as this object knows. The transaction checks
// the version of the base node. So the servers refuse it if another generation is open, or none.
func (c *barrierCall) arrive(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if err := c.turn.Take(ctx, e); err != nil {
		return nil, err
	}
	st, err := c.b.state(ctx, e)
	if err == nil && (st.Broken || c.turn.Mine()) {
		st, err = c.b.learn(ctx, e) // there may have been a Reset, or generations have ended
	}
	if err != nil {
		return nil, err
	}
	if c.tries == 0 {
		c.st = st
	}
	// A request for a node in an earlier generation may have been applied. Then find out first what became of that one.
	if st.Broken || st.Generation != c.st.Generation {
		return c.settle(ctx, e, c.arrive)
	}
	c.st = st
	n, err := node.Make(ctx, e, node.Spec{
		Dir: c.b.dir(st.Generation), Base: c.b.base(), ACL: c.b.at.ACL(), Flags: zk.FlagEphemeral | zk.FlagSequence,
		Name: func(uuid string) string { return node.Prefix(uuid) + "-party-" + c.attempt + "-" },
		Data: c.b.at.Owner, UUID: c.uuid, KeepDuplicates: true, // a gap in the numbers is a death
		Before: func() []any {
			c.tries++
			// The base node has this version only while the generation is open. So if only the directory is missing, that was
			// deleted externally, and node.Make makes it again.
			return append([]any{&zk.CheckVersionRequest{Path: c.b.base(), Version: st.version}}, c.turn.Check()...)
		},
	})
	var refused *node.Refused
	switch {
	case errors.As(err, &refused) && refused.Index > 0: // another party has the turn
		if c.tries == 1 { // this request was not applied; but one before it may have been
			c.tries = 0
		}
		c.turn.Queue()
		return c.arrive, nil
	case refused != nil:
		c.turn.Refused()
		return c.refused(ctx, e)
	case err != nil:
		return nil, err
	}
	return c.arrived(n), nil
}

// refused is for an arrival that the servers refused, usually because the generation has ended.
func (c *barrierCall) refused(ctx context.Context, e *zkconn.Epoch) (step, error) {
	now, err := c.b.learn(ctx, e)
	if err != nil {
		return nil, err
	}
	if c.tries > 1 { // an earlier request got no answer: it may have been applied, and the party may have been counted
		how, err := c.b.recorded(ctx, e, c.st)
		if err != nil {
			return nil, err
		}
		// Only a party itself deletes its node from a broken generation. So an earlier request had not been applied in this
		// session when node.Make looked, and did not count.
		if how == nil || !how.Broken || c.died {
			return c.settle(ctx, e, c.paced(c.arrive))
		}
	}
	c.begin(e, now)
	return c.paced(c.arrive), nil
}

// arrived decides whether all parties are there, by the Stat of the directory at the moment of the arrival.
func (c *barrierCall) arrived(n *node.Node) step {
	a, _ := parseArrival(n.Name)
	c.node, c.place, c.extra = n, a.seq, false
	switch {
	case n.Dir == nil: // the answer did not say how many parties are there
		return c.look
	case n.Dir.NumChildren == 1: // the party is alone, so its own node is the whole list
		return c.orWait(c.decide(gather([]string{n.Name}, n.Dir)))
	case int(n.Dir.NumChildren) >= c.b.parties:
		return c.look
	case int(n.Dir.NumChildren) != a.seq+1:
		return c.breakBecause(breach{Why: Died}) // the node's number counts all that came before it, so one of them is gone
	}
	return c.wait
}

// look decides by the list of the parties that are there.
func (c *barrierCall) look(ctx context.Context, e *zkconn.Epoch) (step, error) {
	g, err := c.b.gathering(ctx, e, c.st.Generation)
	if err != nil {
		return nil, err
	}
	return c.orWait(c.decide(g)), nil
}

// orWait is next, or wait if there is none.
func (c *barrierCall) orWait(next step) step {
	if next == nil {
		return c.wait
	}
	return next
}

// decide returns the next step when the parties in g are there; nil means to wait. The last party to arrive lets all leave.
func (c *barrierCall) decide(g gathering) step {
	n := c.b.parties
	switch {
	case !g.has(c.node.Name):
		return c.nodeGone
	case g.holed(n): // one of the members has died: the others would wait for ever
		return c.breakBecause(c.death(g))
	case c.acting:
		return nil
	case c.acted: // no member is gone, or there would be a gap. So the members are those for whom the action has run
		c.there = g
		return c.release
	}
	c.place = g.place(c.attempt)
	c.extra = c.place >= n
	if c.place != n-1 {
		return nil
	}
	c.there = g
	if c.b.action != nil {
		return c.act
	}
	return c.release
}

// death is the breach when one of the members is missing in g.
func (c *barrierCall) death(g gathering) breach {
	why := breach{Why: Died}
	if c.neighbor != "" && !g.has(c.neighbor) {
		o := owner(c.owner)
		why.By = &o
	}
	return why
}

// release lets all members leave, this party among them. It deletes all nodes of the generation. The servers refuse it if one
// of these nodes is gone, so every member was there until it left.
func (c *barrierCall) release(ctx context.Context, e *zkconn.Epoch) (step, error) {
	how, dir := barrierRecord{}, c.b.dir(c.st.Generation)
	for _, m := range c.there.parties[:c.b.parties] {
		how.Passed = append(how.Passed, m.attempt)
	}
	var all []any
	for _, a := range c.there.all {
		all = append(all, &zk.DeleteRequest{Path: dir + "/" + a.name, Version: -1})
	}
	if len(c.there.names) == len(c.there.all) { // otherwise another program has made a node there
		all = append(all, &zk.DeleteRequest{Path: dir, Version: -1})
	}
	err := c.b.end(ctx, e, c.st, c.st.next(), how, all...)
	switch {
	case err == nil:
		return c.finish(0, nil)
	case record.Conflict(err):
		return c.settle(ctx, e, c.look) // another party has come, or one has gone
	}
	return nil, err
}

// nodeGone is for a party whose node is gone: with its session, with the generation, or because it was removed
// externally. If the generation is still open, it breaks; but an extra party arrives again.
func (c *barrierCall) nodeGone(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if c.extra {
		return c.settle(ctx, e, c.paced(c.arrive)) // all nodes of the party name one attempt, so it counts once
	}
	why := breach{Why: Removed}
	if c.died {
		why = breach{Why: Died, By: c.b.self()}
	}
	return c.settle(ctx, e, c.breakBecause(why))
}

// closed is for a party that found the node open gone. If the generation has not ended, that node was deleted
// externally, and the party breaks the generation.
func (c *barrierCall) closed(ctx context.Context, e *zkconn.Epoch) (step, error) {
	return c.settle(ctx, e, c.breakBecause(breach{Why: Removed}))
}

// breakBecause is breakUp for a reason, with the names of the parties that are there.
func (c *barrierCall) breakBecause(why breach) step {
	return func(ctx context.Context, e *zkconn.Epoch) (step, error) {
		c.breach = c.b.attended(ctx, e, c.st, why)
		return c.breakUp(ctx, e)
	}
}

// breakUp breaks the generation, unless the generation has ended: then the servers refuse it.
func (c *barrierCall) breakUp(ctx context.Context, e *zkconn.Epoch) (step, error) {
	err := c.b.end(ctx, e, c.st, c.st.broken(), barrierRecord{Broken: true, breach: c.breach})
	switch {
	case err == nil:
		return c.fail(c.breach)
	case !record.Conflict(err):
		return nil, err
	}
	return c.settle(ctx, e, c.paced(c.breakUp)) // with the version that the base node has then
}

// wait waits for the end of the generation. One request sets the watches of the party's own node and of the node open.
//
// Each party also watches another one, its neighbor, so that a death is noticed: only after a pause, because most
// generations are complete before. A session ends a session timeout after its last sign of life, and the pause is at
// most a quarter of one, so it hardly delays the notice.
func (c *barrierCall) wait(ctx context.Context, e *zkconn.Epoch) (step, error) {
	if !c.extra { // otherwise no other party must come to the next generation before this one
		c.turn.Leave()
	}
	if err := e.Await(ctx); err != nil {
		return nil, err
	}
	dir := c.b.dir(c.st.Generation)
	news := record.Hear(e, c.node.Path, c.b.open(c.st.Generation))
	defer news.Stop()
	c.neighbor, c.owner = "", zksync.Owner{}
	pause := c.b.neighborPause(e)
	for quiet := pause; ; {
		path, what, err := news.Next(ctx, quiet)
		switch {
		case err != nil:
			return nil, err
		case path == dir && what != zkconn.Disconnected:
			quiet = pause // others have come, and the last one is the neighbor of the first
			continue
		case path != "":
			return c.heard(path, what), nil
		}
		first := c.place == 0
		if first { // its neighbor is the last party, which changes with each arrival. Each arrival writes to the directory
			news.Add(dir)
		}
		next, err := c.lookAround(ctx, e, news)
		switch {
		case next != nil:
			return next, nil
		case err == nil && first == (c.place == 0):
			quiet = math.MaxInt64 // only events
		case err == nil:
			quiet = pause // the list shows that it is the first: its request was applied twice
		// If the connection is lost, all its watches report that at once. If only the answer takes long, ask again.
		case zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			quiet = pause
		default:
			return nil, err
		}
	}
}

// lookAround lists the parties, and watches the neighbor among them: the party before this one, or for the first the last
// member. It returns the next step if the list needs one. While it waits for answers it does not hear of the end of the
// generation, so it gives up after half a session timeout.
func (c *barrierCall) lookAround(ctx context.Context, e *zkconn.Epoch, news *record.Listener) (next step, err error) {
	soon, cancel := context.WithTimeout(ctx, e.Timeout()/2)
	defer cancel()
	g, err := c.b.gathering(soon, e, c.st.Generation)
	if err != nil {
		return nil, err
	}
	if next := c.decide(g); next != nil {
		return next, nil
	}
	at := c.place
	if at == 0 {
		at = min(len(g.parties), c.b.parties)
	}
	now := g.parties[at-1].name
	if now == c.neighbor {
		return nil, nil
	}
	content, err := news.Read(soon, c.b.dir(c.st.Generation)+"/"+now)
	if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		c.neighbor, c.owner, err = now, zksync.Owner(node.Decode(content.Data).Owner), nil
	}
	return nil, err
}

// neighborPause is how long a party waits before it looks for its neighbor. It is longer for very many parties: each of
// them lists them all.
func (b *Barrier) neighborPause(e *zkconn.Epoch) time.Duration {
	return min(max(time.Second, time.Duration(b.parties)*10*time.Millisecond), e.Timeout()/4)
}

// heard is the step after an event of a node that a waiting party watches.
func (c *barrierCall) heard(path string, what zkconn.Event) step {
	switch {
	case what == zkconn.Disconnected, // also if servers that throttle refuse the watches
		what == zkconn.Changed: // another program wrote to the node
		return c.paced(c.wait)
	case path == c.node.Path:
		return c.nodeGone
	case path == c.b.open(c.st.Generation):
		return c.closed
	}
	// The neighbor has died. It was not let go: the node open goes before the nodes of the parties, so that event would have come first.
	return c.look
}

// act runs the action, with a context that ends when the generation is broken or the session is lost. Meanwhile this party
// watches its neighbor as if it waited. If the action fails or panics, act breaks the generation.
func (c *barrierCall) act(parent context.Context, e *zkconn.Epoch) (step, error) {
	c.turn.Leave()
	ctx, cancel := context.WithCancelCause(parent)
	hook := e.OnOver(func(error) { cancel(zksync.ErrLost) })
	defer hook.Stop()
	watched, returned := make(chan struct{}), false
	go func() { // it copies the call, so it has ended before act changes that
		defer close(watched)
		if e.Pause(ctx, c.b.neighborPause(e)) == nil {
			if broken := c.breakOf(ctx, e); broken != nil {
				cancel(broken)
			}
		}
	}()
	stop := func() {
		cancel(nil)
		<-watched
	}
	defer func() {
		if !returned { // the action panicked
			stop()
			c.leave(e, ActionFailed)
		}
	}()
	err := c.b.action(ctx)
	returned = true
	ended := context.Cause(ctx)
	stop()
	switch {
	case parent.Err() != nil: // the end of the call breaks the generation
		return nil, parent.Err()
	case err == nil:
		c.acted = true
		return c.release, nil
	case ended == nil: // the action itself failed
		c.leave(e, ActionFailed)
		c.node = nil
		return c.finish(-1, err)
	case !errors.Is(ended, zksync.ErrBroken): // the session ended first, and the action may have failed because of that
		c.failure = err
		return nil, zkconn.ErrOver
	case !errors.Is(err, ended): // the generation was broken first
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return c.finish(-1, err)
}

// breakOf waits until the generation is broken, with a copy of the call whose only step is to wait, and returns
// why. It is nil if the wait ends otherwise.
func (c *barrierCall) breakOf(ctx context.Context, e *zkconn.Epoch) error {
	other := *c
	other.turn, other.acting = c.b.turn(), true
	next, err := step(other.wait), error(nil)
	for next != nil && err == nil {
		next, err = next(ctx, e)
	}
	if err != nil || !errors.Is(other.err, zksync.ErrBroken) {
		return nil
	}
	return other.err
}

// leaveLimit is how long a call waits for what it does when it leaves. After that the work continues in the
// background, although the context has ended: otherwise the others would wait for a party that is gone.
const leaveLimit = 40 * time.Millisecond

// leave has the party leave, on a copy of the call, until that is done or the session ends. With a cause the party breaks
// the generation. leave returns the index of the party if all had arrived after all, and -1 otherwise.
func (c *barrierCall) leave(e *zkconn.Epoch, why Cause) int {
	gone, index, left := *c, -1, make(chan struct{})
	gone.turn = c.b.turn()    // the call's own turn stays with the call
	if !c.b.at.Spawn(func() { // not if the session is being closed: then the node goes with it
		defer close(left)
		ctx, cancel := c.b.at.Bounded(context.Background())
		defer cancel()
		if index = gone.breakFor(ctx, e, why); index < 0 {
			gone.clear(ctx, e)
		}
	}) {
		return -1
	}
	node.Settle(e, left, leaveLimit)
	select {
	case <-left:
		c.breach = gone.breach
		return index
	default:
		return -1
	}
}

// breakFor breaks the generation of a party that leaves, unless it has ended. It returns the party's index if all had
// arrived, and -1 otherwise.
func (c *barrierCall) breakFor(ctx context.Context, e *zkconn.Epoch, why Cause) int {
	if why == "" || c.tries == 0 {
		return -1
	}
	if c.node == nil { // its request may have been applied; perhaps the others are enough without this party
		if g, err := c.b.gathering(ctx, e, c.st.Generation); err == nil && len(g.parties) >= c.b.parties && g.place(c.attempt) < 0 {
			return -1
		}
	}
	c.breach = breach{Why: why, By: c.b.self()}
	if why == ActionFailed {
		c.breach.Count = c.b.parties // before the action all had arrived
	} else {
		c.breach = c.b.attended(ctx, e, c.st, c.breach)
	}
	if c.extra {
		return -1 // it delays no other party
	}
	next, err := c.breakUp(ctx, e)
	for next != nil && err == nil && c.tries > 0 { // tries is 0 when the party would begin to arrive again
		next, err = next(ctx, e)
	}
	if next == nil && err == nil && c.err == nil {
		return c.index
	}
	return -1
}

// clear removes what the party has left, and waits for that. The last party to leave a broken generation also removes the directory.
func (c *barrierCall) clear(ctx context.Context, e *zkconn.Epoch) {
	if c.node == nil && c.tries < 2 { // without an answer to its only request it is the reaper's already
		return
	}
	select {
	case <-c.unwanted(e):
	case <-ctx.Done():
	case <-e.Over():
	}
	if !c.extra {
		_ = e.Delete(ctx, c.b.dir(c.st.Generation)) // refused while others are in it; a Reset removes it, too
	}
}

// unwanted has the reaper remove all nodes of the party in its generation. If there were several requests for one, one of
// them got no answer, and may yet be applied.
func (c *barrierCall) unwanted(e *zkconn.Epoch) (gone <-chan struct{}) {
	dir, prefix := c.b.dir(c.st.Generation), node.Prefix(c.uuid)
	if c.tries > 1 {
		e.AmbiguousCreate(dir, prefix, e.Connection())
	}
	return e.Reap(zkconn.Orphan{Dir: dir, Prefix: prefix})
}
