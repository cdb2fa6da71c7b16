package zkflight

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/internal/door"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// landing is what a call ends with.
type landing[T any] struct {
	val      T
	err      error
	others   bool        // others in the cluster got, or will get, the result
	foreign  bool        // fn ran elsewhere
	entitled int         // it is for the first so many who boarded
	panicked *panicError // with which fn ended
	gone     bool        // fn called runtime.Goexit
}

// errGoexit is what a call ends with whose function called runtime.Goexit.
var errGoexit = errors.New("zkflight: the function called runtime.Goexit")

// panicError is what Do panics with: fn ran in another goroutine, whose stack would
// otherwise be lost.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// passenger is one contender for a key: this process, with all who ask in it.
type passenger[T any] struct {
	f          *Flight[T]
	c          *flightCall[T]
	fn         func(context.Context) (T, error)
	key        string
	dir        string // of the key
	generation int64
	forgotten  bool // while it ran
	joined     bool // by Close of the session
}

// place is the directory of the generation, whose data is the newest result in it.
func (p *passenger[T]) place() string { return p.dir + "/" + strconv.FormatInt(p.generation, 10) }

func (p *passenger[T]) queue() string { return p.place() + "/lock" }

// errMoved means that the key is in another generation.
var errMoved = errors.New("zkflight: forgotten")

// errAgain means that the place in the queue was lost before anything was done with it.
var errAgain = errors.New("zkflight: try again")

// fly gets a result for everybody who asks for key in this process.
func (f *Flight[T]) fly(c *flightCall[T], key string, fn func(context.Context) (T, error)) {
	p := &passenger[T]{f: f, c: c, fn: fn, key: key, dir: f.path + "/" + nodeName(key), generation: f.generation(key), joined: true}
	defer p.unjoin()
	for pace := (node.Pace{}); ; {
		generation := p.generation
		l, err := p.travel()
		if errors.Is(err, errMoved) || errors.Is(err, errAgain) {
			if p.generation == generation {
				_ = pace.Rest(p.c.ctx, nil) // the next attempt finds out whether it has ended
			}
			continue
		}
		if err != nil {
			l.err = f.wrap("do", key, err)
		}
		if !l.foreign && !p.forgotten || l.panicked != nil || l.gone {
			l.entitled = math.MaxInt
		}
		f.land(c, key, l)
		return
	}
}

// travel queues for the key once: it ends with a result that was written meanwhile, or with a run.
func (p *passenger[T]) travel() (landing[T], error) {
	wait, cancel := context.WithCancelCause(p.c.ctx)
	aboard := p.f.seats(p.c) // before the servers can know
	e := p.listen(wait, cancel)
	lease, err := zksync.NewMutex(p.f.s, p.queue(), p.f.opts...).LockContext(wait)
	// The listener takes back what was announced, and then looks whether this is enough; here it is the other way round.
	// So one of the two notices the other.
	close(e.enough)
	if err != nil || !e.announced() {
		cancel(nil)
	}
	<-e.done // a result that has been announced is worth one read; looking for it takes two
	cancel(nil)
	if heard := e.data != nil || e.moved; heard {
		if err == nil {
			_ = lease.Unlock()
		}
		if e.moved {
			return landing[T]{}, p.move(e.generation)
		}
		return p.arrive(e.data, max(aboard, e.aboard))
	}
	if err != nil {
		return landing[T]{}, err
	}
	return p.turn(lease, func(s sight) int {
		if e.since == 0 || s.mzxid <= e.since {
			return aboard // what the ear knows is of later results
		}
		return max(aboard, e.aboard)
	})
}

// turn is what whoever is granted does: it runs, unless there is a result for those who
// waited. entitled tells who that is.
func (p *passenger[T]) turn(lease *zksync.Lease, entitled func(sight) int) (l landing[T], err error) {
	looked := false
	// How the lease ended matters to nobody any more once this has returned: what depends
	// on it has been written under its guard.
	_ = door.Scope(p.c.ctx, lease, func(ctx context.Context, lease *zksync.Lease) error {
		select {
		case <-p.c.joined:
		default:
		}
		aboard := p.f.seats(p.c) // before the servers are asked whether the key is forgotten
		var s sight
		if s, err = p.look(ctx, lease.Token()); err != nil {
			return err
		}
		looked = true
		switch {
		case s.generation != p.generation:
			err = p.move(s.generation)
		case s.data != nil:
			l, err = p.arrive(s.data, entitled(s))
		default:
			close(p.c.running)
			l, err = p.run(ctx, lease, s, aboard)
			l.entitled = aboard
		}
		return nil
	})
	if !looked && p.c.ctx.Err() == nil && errors.Is(lease.Err(), zksync.ErrLost) {
		return l, errAgain
	}
	return l, err
}

// run calls the function under the lease and gives its result to those who wait.
func (p *passenger[T]) run(ctx context.Context, lease *zksync.Lease, s sight, aboard int) (landing[T], error) {
	heeding := p.heed(ctx, s, aboard)
	l := p.call(context.WithValue(ctx, leaseKey{}, lease))
	heeding()
	p.f.closeDoors(p.c, p.key) // before anybody can have the result
	if l.err != nil && p.c.ctx.Err() != nil {
		return l, nil // nobody here waits any more, and fn has heeded that: let the next one run
	}
	data, bad := p.encode(lease, l)
	others, err := p.give(lease, data, s)
	l.others = others
	switch {
	case l.err != nil || l.panicked != nil || l.gone:
		return l, nil
	case err != nil:
		return l, err
	}
	return l, bad
}

// unjoin has Close of the session not wait for this goroutine any more.
func (p *passenger[T]) unjoin() {
	if p.joined {
		p.f.door.End()
	}
	p.joined = false
}

// call calls the function in a goroutine of its own, which may end in every way. Close does not wait
// for it: it ends when it likes, and may close the session itself.
func (p *passenger[T]) call(ctx context.Context) (l landing[T]) {
	p.unjoin()
	defer func() { p.joined = p.f.door.Begin() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			if returned {
				return
			}
			if r := recover(); r != nil {
				l.panicked = &panicError{r, debug.Stack()}
			} else {
				l.gone = true
			}
		}()
		l.val, l.err = p.fn(ctx)
		returned = true
	}()
	<-done
	return l
}

// give writes the result for those who queue, if anybody does. That is the end of the run:
// who queued before gets the result, who comes later does not.
func (p *passenger[T]) give(lease *zksync.Lease, data []byte, s sight) (others bool, err error) {
	// The answer to a write, empty though it is, tells how many there were at that very
	// moment. Mostly there is nobody, and the result need not travel. And it is applied only
	// if nobody has made the servers forget the key meanwhile.
	stock := &zk.SetDataRequest{Path: p.queue(), Version: -1}
	res, err := insist(lease, stock, &zk.CheckVersionRequest{Path: p.dir, Version: s.version})
	if errors.Is(err, zk.ErrBadVersion) {
		p.forgotten = true
		res, err = insist(lease, stock)
	}
	switch {
	case errors.Is(err, zksync.ErrLost):
		return false, err
	case err != nil || len(res) == 0 || res[0].Stat == nil || res[0].Stat.NumChildren > 1:
		_, err = insist(lease, &zk.SetDataRequest{Path: p.place(), Data: data, Version: s.written})
		if errors.Is(err, zk.ErrBadVersion) {
			// It was written, and the answer lost. Written again it would be for those, too, who came in between.
			err = nil
		}
		return err == nil, err
	case s.stale:
		// Nobody has any use for it: those whom it was for were ahead in the queue. Should this
		// fail, the next one does it, or it goes with its directory.
		_, _ = lease.Guard(&zk.SetDataRequest{Path: p.place(), Version: -1})
	}
	return false, nil
}

// insist has a write applied that may be applied twice. While the lease holds nobody else
// writes there.
func insist(lease *zksync.Lease, ops ...any) (res []zk.MultiResponse, err error) {
	// A server that breaks the connection whenever it sees this request will not change
	// its mind.
	const tries = 8
	for pause, n := 5*time.Millisecond, 1; ; n++ {
		res, err = lease.Guard(ops...)
		if errors.Is(err, zksync.ErrReleased) {
			err = zksync.ErrClosed // only the end of the session releases it while the function runs
		}
		var named *zksync.Error
		if errors.As(err, &named) {
			err = named.Err // it was not the caller who called Guard
		}
		if err == nil || !zksync.Ambiguous(err) || n == tries {
			return res, err
		}
		time.Sleep(pause)
		pause *= 2
	}
}
