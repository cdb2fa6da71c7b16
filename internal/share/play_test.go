//go:build !race

package share

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// start has p make a call in a goroutine of its own.
func (w *world) start(p *person, does string, call func(context.Context) (*lease.Lease, error)) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	w.came++
	p.does, p.since, p.got, p.err = does, w.came, nil, nil
	p.done.Store(0)
	go func() {
		p.got, p.err = call(ctx)
		p.done.Store(w.answers.Add(1))
	}()
}

// event is something that may happen now.
type event struct {
	name string
	do   func()
}

// events are all that may happen now. Of those who do nothing one stands for all.
func (w *world) events() (all []event) {
	add := func(name string, do func()) { all = append(all, event{name, do}) }
	fresh := true
	for _, p := range w.people {
		switch {
		case p.does == "" && p.lease == nil && fresh:
			fresh = false
			for _, dropIn := range []bool{false, true} {
				add(fmt.Sprint(p.name, " locks ", dropIn), func() { w.lock(p, dropIn) })
			}
			add(p.name+" tries", func() {
				p.free, p.dropIn = w.free(), false
				w.start(p, "try", func(ctx context.Context) (*lease.Lease, error) { return p.c.Try(ctx, false) })
			})
		case p.does == "" && p.lease != nil:
			add(p.name+" unlocks", func() { w.unlock(p) })
			if !p.dropIn {
				add(p.name+" waits inside", func() { w.wait(p) })
			}
		case p.does != "" && p.does != "unlock":
			add(p.name+" gives up", func() {
				p.cancel()
				time.Sleep(node.Grace)
			})
		}
	}
	if len(w.srv.Ephemerals()) > 0 && !w.still() {
		add("session lost", func() {
			// What is on its way is lost with it: whether that or the loss was heard first would be chance.
			conn := w.conn.Load()
			w.srv.Expire(w.s.ID())
			_ = conn.Close()
		})
	}
	switch l := w.c.Current(); {
	case w.c.state == lingering:
		add("lingered", func() { time.Sleep(lingers) })
	case l != nil && l.Err() == nil:
		add("held too long", func() { time.Sleep(time.Until(l.Since().Add(maxHold))) })
	}
	if r := w.other; r != nil && r.does == "" && r.lease == nil {
		add("rival locks", func() { w.lock(r, false) })
	} else if r != nil && r.does == "" {
		add("rival unlocks", func() { w.unlock(r) })
	}
	if !w.stays {
		add("close", w.close)
	}
	return all
}

func (w *world) lock(p *person, dropIn bool) {
	p.dropIn = dropIn
	w.start(p, "lock", func(ctx context.Context) (*lease.Lease, error) { return p.c.Acquire(ctx, dropIn) })
}

func (w *world) unlock(p *person) {
	w.start(p, "unlock", func(context.Context) (*lease.Lease, error) { return nil, p.lease.Unlock() })
}

// wait is a release for a wait, which never locks again.
func (w *world) wait(p *person) {
	at := fmt.Sprintf("%s/%s-%d", w.dir, p.name, w.came)
	r := queue.Replacement{Dir: w.dir, Node: at, ACL: zk.WorldACL(zk.PermAll)}
	w.start(p, "wait", func(ctx context.Context) (*lease.Lease, error) {
		_, kept, err := p.c.monitor().Suspend(ctx, p.lease, r)
		return kept, err
	})
}

func (w *world) close() {
	w.closed = true
	done := make(chan struct{})
	go func() {
		_ = w.s.Close()
		close(done)
	}()
	time.Sleep(settles)
	w.gate.open()
	<-done
}

// scope says what is played.
type scope struct {
	begin  []string // events, by their names, that come first
	depth  int      // how many come then
	refuse bool     // the servers refuse every wait inside the lock
	rival  bool     // another process locks, too
	stays  bool     // the session is closed at the end only
}

// play lets events happen as choose says, which picks one of so many possibilities, and then the rest: everybody who can
// unlocks, until all is over.
func play(sc scope, choose func(of int) int) (log []string, err error) {
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	defer w.srv.Close()
	defer func() {
		log = w.log
		if !w.closed {
			w.close()
		}
		if w.other != nil {
			_ = w.other.c.side.at.Session.Close()
		}
	}()
	for _, name := range sc.begin {
		if err := w.named(name); err != nil {
			return nil, err
		}
	}
	for i := 0; i < sc.depth && !w.closed; i++ {
		all := w.events()
		e := all[choose(len(all))]
		w.log = append(w.log, e.name)
		if err := w.act(e); err != nil {
			return nil, err
		}
		if w.owed() && choose(2) == 0 {
			if err := w.settle(); err != nil {
				return nil, err
			}
		}
	}
	return nil, w.rest()
}

// named has the event of that name happen.
func (w *world) named(name string) error {
	if name == "answers" {
		return w.settle()
	}
	for _, e := range w.events() {
		if e.name == name {
			return w.act(e)
		}
	}
	return fmt.Errorf("%w: %s cannot be", errRefused, name)
}

// act has e happen.
func (w *world) act(e event) error {
	before := w.c.Current()
	waiting := w.first()
	stranger := w.other != nil && w.other.does == "lock" && w.other.done.Load() == 0 && !w.owed()
	e.do()
	synctest.Wait()
	if strings.HasPrefix(e.name, "held too long") && before.Err() != errs.ErrMaxHold && !errors.Is(before.Err(), errs.ErrLost) {
		return fmt.Errorf("%w: held too long, and %v", errRefused, before.Err())
	}
	if err := w.check(); err != nil {
		return err
	}
	after := w.c.Current()
	if strings.HasSuffix(e.name, " unlocks") && before != nil && waiting != nil && after != nil && before != after {
		return w.handedOver(before.Token().Zxid, after.Token().Zxid, stranger)
	}
	return nil
}

// handedOver is told of a hand-over that was at once. stranger says that another process waits, and that nothing was on its way that
// could tell of it: then the bound counts. Without one it counts until the servers have answered after the grant.
func (w *world) handedOver(before, after int64, stranger bool) error {
	if before != after {
		return nil
	}
	o := w.passed[after]
	o.all++
	if stranger {
		o.known++
	}
	if o.known > passes || o.all > passes && w.heard == o.heard {
		return fmt.Errorf("%w: handed over %d times, %d of them beside a stranger", errRefused, o.all, o.known)
	}
	return nil
}

// first is the one who waits, and came first.
func (w *world) first() (first *person) {
	for _, p := range w.people {
		if p.does == "lock" && p.done.Load() == 0 && (first == nil || p.since < first.since) {
			first = p
		}
	}
	return first
}

// settle lets all answers arrive. A connection that had none may have to be made again, and a removal tried again; that takes
// some time.
func (w *world) settle() (err error) {
	w.log = append(w.log, "answers")
	w.heard++
	w.gate.open()
	defer w.gate.close()
	for range 5 {
		time.Sleep(settles)
		synctest.Wait()
		if err := w.check(); err != nil {
			return err
		}
		if err = w.settled(); err == nil {
			return nil
		}
	}
	return err
}

// rest is the end: all unlock who hold, until nobody does anything, and nothing is left.
func (w *world) rest() error {
	for range 2 * len(w.people) {
		if w.closed {
			break
		}
		if err := w.settle(); err != nil {
			return err
		}
		idle := true
		for _, p := range w.all() {
			if p.lease != nil && p.does == "" {
				w.log = append(w.log, p.name+" unlocks")
				w.unlock(p)
				idle = false
			}
		}
		synctest.Wait()
		if err := w.check(); err != nil {
			return err
		}
		if idle {
			break
		}
	}
	if !w.closed {
		time.Sleep(lingers)
		if err := w.settle(); err != nil {
			return err
		}
		if !w.still() {
			return fmt.Errorf("%w: something remains: %v", errRefused, w.c.state)
		}
		w.close()
	}
	synctest.Wait()
	return w.over()
}
