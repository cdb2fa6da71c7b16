package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// parcel is what the servers know of an element, and what callers were told of it.
type parcel struct {
	due     time.Time
	claim   string    // the node of its delivery; empty if nobody has it
	since   time.Time // when it was put, given back, or claimed
	removed string    // "ack" or "take" when it is gone

	acked, maybe int // Acks that returned nil, and those with an unknown outcome
}

// office follows each element by the name of its node, at each commit: that none is delivered too early, to two at once, or
// too late while consumers wait.
type office struct {
	mu      sync.Mutex
	parcels map[string]*parcel
	calm    time.Time // since when nothing disturbs; zero in a storm
	wrong   []string

	put, doubtful, refused map[int]bool // outcomes of Put, by value
	values                 map[string]int
	done                   map[int]int // values that were acknowledged or taken
	taken, lostTakes       int
	lists, claimLists      int
}

const (
	recallTimeout = 4 * time.Second // of the sessions
	settles       = 8 * time.Second // after the last fault all sessions are there again, or have ended
	prompt        = 1500 * time.Millisecond
)

func newOffice(e *zktest.Ensemble) *office {
	o := &office{
		parcels: map[string]*parcel{}, put: map[int]bool{}, doubtful: map[int]bool{}, refused: map[int]bool{},
		values: map[string]int{}, done: map[int]int{},
	}
	e.OnCommit(o.commit)
	e.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		o.with(func() {
			switch {
			case q.Op == zktest.GetChildren && q.Path == path+"/zkqueue/elements":
				o.lists++
			case q.Op == zktest.GetChildren && q.Path == path+"/zkqueue/claims":
				o.claimLists++
			}
		})
		return zktest.Verdict{}
	})
	return o
}

func (o *office) with(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *office) complain(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// commit follows one transaction.
func (o *office) commit(x zktest.Txn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	made := map[string]bool{}
	kind := "take"
	for _, c := range x.Changes {
		name, isElement := strings.CutPrefix(c.Path, path+"/zkqueue/elements/")
		claim, isClaim := strings.CutPrefix(c.Path, path+"/zkqueue/claims/")
		switch {
		case isClaim && c.Kind == zktest.Created:
			made[claim] = true
			if c.Owner != 0 {
				o.claims(x, claim)
			}
		case isClaim && c.Kind == zktest.Deleted && !made[claim]:
			kind = "ack"
			if p := o.parcels[claim[:strings.LastIndexByte(claim, '.')]]; p != nil && p.claim == claim {
				p.claim, p.since = "", x.Time
			}
		case isElement && c.Kind == zktest.Created:
			o.parcels[name] = &parcel{due: dueOf(name), since: x.Time}
		case isElement && c.Kind == zktest.Deleted:
			o.leaves(x, name, kind)
		}
	}
}

// dueOf is when an element is due, as its name says.
func dueOf(name string) (due time.Time) {
	for part := range strings.SplitSeq(name, ".") {
		if ms, err := strconv.ParseInt(strings.TrimPrefix(part, "d"), 10, 64); err == nil && part[0] == 'd' && len(part) > 12 {
			due = time.UnixMilli(ms)
		}
	}
	return due
}

func (o *office) claims(x zktest.Txn, claim string) {
	name := claim[:strings.LastIndexByte(claim, '.')]
	p := o.parcels[name]
	if p == nil || p.removed != "" || p.claim != "" {
		o.complain("%s is claimed: %+v", claim, p)
		return
	}
	o.timely(x.Time, name, p)
	p.claim, p.since = claim, x.Time
}

func (o *office) leaves(x zktest.Txn, name, kind string) {
	p := o.parcels[name]
	if p.removed != "" || p.claim != "" {
		o.complain("%s leaves (%s): %+v", name, kind, p)
	}
	if p.removed = kind; kind == "take" {
		o.timely(x.Time, name, p)
	}
}

// timely checks when an element that was free is delivered.
func (o *office) timely(now time.Time, name string, p *parcel) {
	if now.Before(p.due) {
		o.complain("%s is delivered %v early", name, p.due.Sub(now))
	}
	if late := o.late(now, p); late > prompt {
		o.complain("%s is delivered %v late", name, late)
	}
}

// late is for how long an element has lain there, free and due, while nothing disturbed the consumers.
func (o *office) late(now time.Time, p *parcel) time.Duration {
	if o.calm.IsZero() {
		return 0
	}
	from := o.calm.Add(settles)
	for _, t := range []time.Time{p.due, p.since} {
		if t.After(from) {
			from = t
		}
	}
	return now.Sub(from)
}

// look checks what lies there.
func (o *office) look() {
	o.with(func() {
		for name, p := range o.parcels {
			if p.removed == "" && o.late(time.Now(), p) > prompt {
				o.complain("%s lies there: %+v", name, p)
			}
		}
	})
}

// puts has a producer put a value.
func (o *office) puts(ctx context.Context, q *zkqueue.Queue[int], v int, rng *rand.Rand, most time.Duration) {
	var err error
	switch delay := time.Duration(rng.Int64N(int64(most))); rng.IntN(6) {
	case 0:
		err = q.Put(ctx, v)
	case 1:
		err = q.Put(ctx, v, zkqueue.WithPriority(rng.IntN(4)-1))
	default:
		err = q.Put(ctx, v, zkqueue.WithDelay(delay))
	}
	o.with(func() {
		switch {
		case err == nil:
			o.put[v] = true
		case zksync.Ambiguous(err):
			o.doubtful[v] = true
		default:
			o.refused[v] = true
		}
	})
}

// works is a consumer until ctx ends. It goes away for a moment now and then, so others are the first in line.
func (o *office) works(ctx context.Context, q *zkqueue.Queue[int], rng *rand.Rand) {
	for ctx.Err() == nil {
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
		some, cancel := context.WithTimeout(ctx, time.Duration(200+rng.IntN(6000))*time.Millisecond)
		if rng.IntN(5) == 0 {
			v, err := q.Take(some)
			o.with(func() { o.tookOne(some, v, err) })
		} else if d, err := q.Receive(some); err == nil {
			o.finishes(d, rng)
		} else if some.Err() == nil && !errors.Is(err, zksync.ErrLost) {
			o.with(func() { o.complain("Receive: %v", err) })
		}
		cancel()
	}
}

func (o *office) tookOne(ctx context.Context, v int, err error) {
	switch {
	case err == nil:
		o.taken++
		o.done[v]++
	case zksync.Ambiguous(err):
		o.lostTakes++
	case ctx.Err() == nil:
		o.complain("Take: %v", err)
	}
}

// finishes acknowledges a delivery, or gives it back.
func (o *office) finishes(d *zkqueue.Delivery[int], rng *rand.Rand) {
	claim := d.Lease().Node()[strings.LastIndexByte(d.Lease().Node(), '/')+1:]
	name := claim[:strings.LastIndexByte(claim, '.')]
	o.with(func() {
		if v, known := o.values[name]; known && v != d.Value {
			o.complain("%s has the values %d and %d", name, v, d.Value)
		}
		o.values[name] = d.Value
	})
	time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
	if rng.IntN(6) == 0 {
		_ = d.Nack(context.Background())
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	if rng.IntN(6) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
	}
	defer cancel()
	err := d.Ack(ctx)
	o.with(func() {
		switch {
		case err == nil:
			o.parcels[name].acked++
			o.done[d.Value]++
		case zksync.Ambiguous(err):
			o.parcels[name].maybe++
		case !errors.Is(err, zksync.ErrLost):
			o.complain("Ack: %v", err)
		}
	})
}

// match finds for every element that was put what has become of it.
func (o *office) match(t *testing.T, story string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.wrong, story)
	takes, accounted := 0, map[int]bool{}
	for name, p := range o.parcels {
		switch {
		case p.removed == "take":
			takes++
		case p.removed == "ack":
			require.Positive(t, p.acked+p.maybe, "%s: %s is gone, and nobody has acknowledged it", story, name)
			accounted[o.values[name]] = true
		default:
			require.Zero(t, p.acked, "%s: %s was acknowledged, and is there", story, name)
			require.True(t, p.due.After(time.Now()), "%s: %s is there: %+v", story, name, p)
		}
		require.LessOrEqual(t, p.acked, 1, "%s: %s", story, name)
	}
	unmatched := 0
	for v := range o.put {
		if accounted[v] || o.done[v] > 0 {
			continue
		}
		unmatched++ // a Take has removed it, and was not told
	}
	require.LessOrEqual(t, unmatched, takes-o.taken, "%s: elements are lost", story)
	require.LessOrEqual(t, takes-o.taken, o.lostTakes, "%s: elements were taken by nobody", story)
	for v, n := range o.done {
		require.Equal(t, 1, n, "%s: %d", story, v)
		require.False(t, o.refused[v], "%s: the Put of %d has failed", story, v)
	}
	require.LessOrEqual(t, len(o.put), len(o.parcels)-fillers, story)
	require.LessOrEqual(t, len(o.parcels)-fillers, len(o.put)+len(o.doubtful), story)
}

// fillers are delayed all the time, so a listing is worth to be remembered.
const fillers = 70

// disturb plays faults for a while, and heals them all.
func disturb(e *zktest.Ensemble, rng *rand.Rand, sessions []*zksync.Session) {
	var heals []func()
	var lagging bool
	for range 8 {
		id := sessions[rng.IntN(len(sessions))].ID()
		follower := (e.Leader() + 1 + rng.IntN(3)) % e.Len()
		switch rng.IntN(10) {
		case 0, 1:
			e.Expire(id)
		case 2, 3:
			e.Disconnect(id)
		case 4:
			heals = append(heals, e.Partition(id))
		case 5:
			if at := e.At(id); at >= 0 {
				heals = append(heals, e.Server(at).DropReplies(id))
			}
		case 6, 7:
			if !lagging && e.Leader() >= 0 {
				heals, lagging = append(heals, e.Lag(follower)), true
			}
		case 8:
			heals = append(heals, e.Intercept(zktest.On(zktest.Multi, path+"/**").LoseReply().Nth(2).Times(1).Maybe()).Remove)
		case 9:
			if !lagging && rng.IntN(3) == 0 && e.Leader() >= 0 {
				e.ElectLeader(follower)
			}
		}
		time.Sleep(time.Duration(rng.IntN(900)) * time.Millisecond)
		if len(heals) > 2 {
			heals[0]()
			heals = heals[1:]
		}
	}
	for _, heal := range heals {
		heal()
	}
}

// besideDelayed has consumers work beside many delayed elements, in storms, and in silence after each. It returns how many
// views were made without a listing of the elements.
func besideDelayed(t *testing.T, e *zktest.Ensemble, seed uint64) (recalled int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	o := newOffice(e)
	calm := zkqueue.New[int](e.Session(t, zksync.WithTimeout(time.Minute)), path)
	delay(t, calm, fillers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var consumers sync.WaitGroup
	shaken := e.Session(t, zksync.WithTimeout(recallTimeout))
	q, sessions := zkqueue.New[int](shaken, path), []*zksync.Session{shaken}
	for i := range 1 + rng.IntN(3) {
		s := e.SessionAt(t, (i+int(seed))%e.Len(), zksync.WithTimeout(recallTimeout))
		sessions = append(sessions, s)
		q := zkqueue.New[int](s, path)
		for j := range 1 + rng.IntN(2) {
			consumers.Go(func() { o.works(ctx, q, rand.New(rand.NewPCG(seed, uint64(100*i+j)))) })
		}
	}
	for round := range 3 {
		var producer sync.WaitGroup
		producer.Go(func() { o.produces(ctx, q, 100*round, rand.New(rand.NewPCG(seed, uint64(1000+round)))) })
		disturb(e, rng, sessions)
		producer.Wait()
		o.silence(ctx, calm, 100*round+50, rng)
	}
	stop()
	consumers.Wait()
	time.Sleep(settles)
	o.match(t, fmt.Sprint("seed ", seed))
	for _, dir := range []string{"claims", "takers"} {
		require.Empty(t, e.Server(e.Leader()).Children(path+"/zkqueue/"+dir), "seed %d: %s", seed, dir)
	}
	return o.claimLists - o.lists
}

// produces puts elements in a storm. Some become due in the silence after it.
func (o *office) produces(ctx context.Context, q *zkqueue.Queue[int], first int, rng *rand.Rand) {
	for i := range 12 {
		some, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(3000))*time.Millisecond)
		o.puts(some, q, first+i, rng, 25*time.Second)
		cancel()
		time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
	}
}

// silence sees that each element comes at once when nothing disturbs: a change that is missed is not made up for by the next one. At the
// end all have become due.
func (o *office) silence(ctx context.Context, q *zkqueue.Queue[int], first int, rng *rand.Rand) {
	o.with(func() { o.calm = time.Now() })
	time.Sleep(settles + 2*prompt)
	for i := range 4 {
		o.puts(ctx, q, first+i, rng, 2*time.Second)
		time.Sleep(2*time.Second + 2*prompt)
		o.look()
	}
	o.with(func() { o.calm = time.Time{} })
}

// A consumer that remembers a listing of delayed elements misses none, whatever others, faults and servers that lag do: each element
// is acknowledged or taken, or comes again, and it comes at once when it is due.
func TestEveryElementComesBesideDelayedOnesInAStorm(t *testing.T) {
	recalled, seeds := 0, proving.Rounds(20)
	for seed := range uint64(seeds) {
		proving.AmongMembers(t, 4, 500*time.Millisecond, func(t *testing.T, e *zktest.Ensemble) { recalled += besideDelayed(t, e, seed) })
	}
	require.Greater(t, recalled, 30*seeds, "views without a listing of the elements")
}
