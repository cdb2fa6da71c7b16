package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	reads "github.com/go-menagerie/menagerie/internal/look"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// started is close to the start of the process. --wait counts from here, so it includes
// connecting.
var started = time.Now()

// sightLimit is how long after --wait an answer of the servers still counts.
const sightLimit = 150 * time.Millisecond

// whoHolds looks for the holder shortly before the time of --wait is over, so that the error can name it. forget
// stops that when the wait has ended.
func (a *app) whoHolds(s *zksync.Session, o lockOptions) (held <-chan string, forget func() bool) {
	if o.wait == 0 {
		return nil, func() bool { return false }
	}
	early := min(o.wait/2, time.Second)
	text := make(chan string, 1)
	end := started.Add(o.wait)
	// On a busy machine the function may begin late. It ends in time all the same.
	look := time.AfterFunc(time.Until(end.Add(-early)), func() { text <- a.heldNow(s, o.path, end.Add(sightLimit)) })
	return text, look.Stop
}

// heldNow says which process holds path, and for how long, and if it is probably dead: ": held by web-3 pid 4711 for 12s". At a meeting it says who has
// come: ": 2 of 3 have arrived: web-3 pid 4711, web-4 pid 815", and at a latch or a queue how many events or elements there are, and which process has closed a gate. It blocks until end at most.
func (a *app) heldNow(s *zksync.Session, path string, end time.Time) (text string) {
	ctx, cancel := context.WithDeadline(context.Background(), end)
	defer cancel()
	_ = tree.Follow(ctx, s, 0, false, func(ctx context.Context, l *tree.Look) error { // if it fails, the text says less
		l.Most = maxNames
		o, err := l.Object(ctx, path)
		if o == nil || err != nil {
			return err
		}
		a.hear(ctx, min(hearLimit, time.Until(end)-sightLimit), o.Entries)
		holders := o.In(zksync.Held)
		if held := tree.HeldBy(holders, time.Now()); held != "" {
			if text = ": " + held; holders[0].Session == tree.SessionText(s.ID()) { // it is next
				text = ": it was lost, and its lock delay has not passed"
			}
		} else if o.Total != nil && (o.State == "waiting" || o.State == "closed") {
			text = ": " + strings.TrimPrefix(o.Detail, "closed: ") + names(o.Entries, int(*o.Count))
		} else if o.Kind == "queue" || o.State == "closed" || !o.Queue && len(present(o)) > 0 {
			text = ": " + o.Detail
		}
		return nil
	})
	if ctx.Err() != nil {
		return ", and no server answers"
	}
	return text
}

// maxNames is how many parties a message names.
const maxNames = 16

// names is ": web-3 pid 4711, web-4 pid 815 and 2 others", of count parties in all; "" if none is known.
func names(rows []tree.Row, count int) (text string) {
	for i, r := range rows {
		text += []string{": ", ", "}[min(i, 1)] + r.Who()
	}
	if n := count - len(rows); n > 0 && len(rows) > 0 {
		text += " and " + wording.Plural(int64(n), "other")
	}
	return text
}

// answered reports whether a server answers within limit.
func answered(s *zksync.Session, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return tree.Looking(ctx, s, func(ctx context.Context, l *tree.Look) error {
		_, _, err := l.Epoch.Exists(ctx, "/")
		return err
	}) == nil
}

// narrate prints on standard error, for -v, the position of this session in the queue at the path and
// the holder, and prints them again when they change. The function that it returns ends that.
func (a *app) narrate(s *zksync.Session, opts lockOptions) (end func()) {
	if a.verbosity == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { a.reportDeath(ctx, s, opts) })
	ended.Go(func() {
		if !rest(ctx, narrateAfter) {
			return
		}
		var last string
		_ = tree.Follow(ctx, s, narrateEvery, true, func(ctx context.Context, l *tree.Look) error { // only these lines depend on it
			session := tree.SessionText(s.ID())
			o, err := ofWaiter(ctx, l, opts.path, session)
			if o == nil || err != nil {
				return err
			}
			if now := gist(o, session); now != last && (awaited(o, session) || opts.beside && len(present(o)) > 0) {
				last = now
				text := o.Detail
				if !opts.beside {
					text = standing(o, session)
				}
				fmt.Fprintf(a.stderr, "menagerie: waiting for %s: %s\n", opts.path, text)
			}
			return nil
		})
	})
	return func() { cancel(); ended.Wait() }
}

// reportDeath prints, for -v, which holders are probably dead: the death of a process changes no node.
func (a *app) reportDeath(ctx context.Context, s *zksync.Session, opts lockOptions) {
	reported := make(map[string]bool)
	for rest(ctx, deathEvery) {
		_ = tree.Follow(ctx, s, 0, false, func(ctx context.Context, l *tree.Look) error { // only these lines depend on it
			o, err := l.Object(ctx, opts.path)
			if o == nil || err != nil {
				return err
			}
			a.hear(ctx, inspectLimit, o.Entries)
			for _, r := range o.In(zksync.Held) {
				if r.Dead && !reported[r.Node] && (opts.beside || awaited(o, tree.SessionText(s.ID()))) {
					reported[r.Node] = true
					fmt.Fprintf(a.stderr, "menagerie: waiting for %s: %s\n", opts.path, tree.HeldBy([]tree.Row{r}, time.Now()))
				}
			}
			return nil
		})
	}
}

// deathEvery is the time between two questions to the servers which holders still live.
const deathEvery = 5 * time.Second

// ofWaiter is object, and watches what concerns the session; changed is told. For a session that waits
// in a queue it does not watch the whole queue, or all waiters would read it again after each release. It watches
// the entry just ahead and the one halfway to the head. So at most three waiters are told when an entry goes.
func ofWaiter(ctx context.Context, l *tree.Look, path, session string) (*tree.Object, error) {
	changed := l.Changed
	l.Changed = nil
	o, err := l.Object(ctx, path)
	l.Changed = changed
	if err != nil {
		return nil, err
	}
	if o == nil || inLine(o, session) == "" {
		return l.Object(ctx, path)
	}
	own := slices.IndexFunc(o.Entries, func(r tree.Row) bool { return r.State == zksync.Waiting && r.Session == session && r.Token != "" })
	if own == 0 {
		return o, nil // no entry is ahead
	}
	for _, i := range slices.Compact([]int{(own - 1) / 2, own - 1}) {
		if err := watchEntry(ctx, l, o.Entries[i]); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// watchEntry watches one entry.
func watchEntry(ctx context.Context, l *tree.Look, r tree.Row) error {
	full := l.Session.Full(r.Node)
	if err := reads.Absent(l.Watch(ctx, full, false)); err != nil {
		return err
	}
	_, there, err := l.Epoch.Exists(ctx, full)
	if err == nil && !there { // it went before the watch was set
		select {
		case l.Changed <- struct{}{}:
		default:
		}
	}
	return err
}

const (
	// narrateAfter is how long a wait must last before anything is printed.
	narrateAfter = 100 * time.Millisecond
	// narrateEvery is the shortest time between two looks: each reads the whole queue.
	narrateEvery = time.Second
)

// inLine is the position of a session among the waiters: "2nd in line"; "" if it does not wait for
// its turn.
func inLine(o *tree.Object, session string) string {
	for i, r := range o.In(zksync.Waiting) {
		if r.Session == session && r.Token != "" {
			return wording.InLine(i + 1)
		}
	}
	return ""
}

// standing is the text for a waiter: its position, and what it waits for.
func standing(o *tree.Object, session string) string {
	text := o.Detail
	if held := tree.HeldBy(o.In(zksync.Held), time.Now()); held != "" {
		text = held
	}
	if place := inLine(o, session); place != "" {
		return place + ", " + text
	}
	return text
}

// awaited reports whether the session waits: in a queue for its turn, elsewhere for the state to change.
func awaited(o *tree.Object, session string) bool {
	return inLine(o, session) != "" || len(o.In(zksync.Held)) == 0 && o.State == "waiting" || o.State == "closed"
}

// gist is the part of standing that does not change with time alone.
func gist(o *tree.Object, session string) string {
	gist := inLine(o, session) + o.State
	if o.Count != nil {
		gist += fmt.Sprint(" ", *o.Count)
	}
	for _, r := range o.In(zksync.Held) {
		gist += " " + r.Node
	}
	return gist
}

// rest waits for d, and reports whether ctx lives.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
