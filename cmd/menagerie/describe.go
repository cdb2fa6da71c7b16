package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// This file describes the recipes on the queue: locks, semaphores, elections, and recipes that
// run a function under a lock.

// free is the detail of a lock without contenders.
const free = "nobody holds or waits"

func describeQueue(ctx context.Context, l *look, n *node, o *object) (err error) {
	o.queue = true
	if o.Entries, err = l.contenders(ctx, n.path); err != nil {
		return err
	}
	if len(o.Entries) == 0 {
		o.State, o.Detail = "free", free
		for _, c := range n.children {
			if m := heldMark.FindStringSubmatch(c); m != nil {
				o.Detail = "it was lost: the next one waits for the lock delay of " + m[1]
			}
		}
		return nil
	}
	shared := func(r contenderRow) bool { return r.Kind == zksync.KindRead || r.Kind == zksync.KindWrite }
	switch {
	case slices.ContainsFunc(o.Entries, func(r contenderRow) bool { return r.Permits > 0 }):
		o.Kind = "semaphore" // the queue of one, without its base node
	case slices.ContainsFunc(o.Entries, shared):
		o.Kind = "rwlock"
	default:
		if err := l.candidates(ctx, n, o); err != nil {
			return err
		}
	}
	holders, now := o.in(zksync.Held), time.Now()
	o.State, o.Detail = "held", heldBy(holders, now)
	switch {
	case len(holders) == 0:
		o.State, o.Detail = "free", "held by nobody"
	case o.Kind == "election":
		o.State, o.Detail = "led", fmt.Sprintf("led by %s, %s%s", holders[0].ID, holders[0].who(), wording.ForHow(holders[0].since, now))
	case holders[0].Kind == zksync.KindRead:
		o.State, o.Detail = "read", strings.Replace(o.Detail, "held", "held for reading", 1)
	}
	o.Detail += waiting(o)
	return nil
}

// waiting says how many wait: "; 2 wait".
func waiting(o *object) string {
	switch n := len(o.in(zksync.Waiting)); n {
	case 0:
		return ""
	case 1:
		return "; 1 waits"
	default:
		return fmt.Sprintf("; %d wait", n)
	}
}

// candidates looks for candidates' ids in the contenders' nodes. A contender without an id may have left
// while its node was read. So one contender with an id makes it an election.
func (l *look) candidates(ctx context.Context, n *node, o *object) error {
	ids := map[string]string{}
	names := make([]string, len(o.Entries))
	for i, r := range o.Entries {
		names[i] = strings.TrimPrefix(r.Node, strings.TrimSuffix(n.path, "/")+"/")
	}
	watched := l.changed
	l.changed = nil // an entry says the same for ever
	defer func() { l.changed = watched }()
	err := l.each(ctx, n, names, func(c *node) error {
		if id := ownerOf(c.data).ID; id != "" {
			ids[c.path] = id
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	o.Kind = "election"
	for i := range o.Entries {
		r := &o.Entries[i]
		if r.ID = ids[r.Node]; r.ID == "" {
			r.ID = r.who()
		}
	}
	return nil
}

func describeSemaphore(ctx context.Context, l *look, n *node, o *object) (err error) {
	o.queue = true
	if o.Entries, err = l.contenders(ctx, below(n.path, "queue")); err != nil {
		return err
	}
	if l.changed != nil { // its queue is another node
		if _, err := l.node(ctx, below(n.path, "queue")); err != nil {
			return err
		}
	}
	config := decoded[struct {
		Permits  int64
		Capacity *int64
	}](n)
	total, held := config.Permits, int64(0)
	if config.Capacity != nil { // 0 counts, too
		total = *config.Capacity
	}
	for _, r := range o.in(zksync.Held) {
		held += r.Permits
	}
	o.of(held, total)
	o.State, o.Detail = "free", fmt.Sprintf("%d of %s held", held, plural(total, "permit"))
	if held > 0 {
		o.State = "held"
		o.Detail += strings.TrimPrefix(heldBy(o.in(zksync.Held), time.Now()), "held")
	}
	o.Detail += waiting(o)
	return nil
}

// isMark accepts the names below a gate's closed node: a process opens the gate, or has just died.
var isMark = like(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func describeGate(ctx context.Context, l *look, n *node, o *object) error {
	return l.each(ctx, n, n.children, func(c *node) error {
		if c.stat.EphemeralOwner != 0 || slices.ContainsFunc(c.children, func(name string) bool { return !isMark(name) }) {
			*o = object{Path: n.path, Kind: "directory", Entries: o.Entries, rest: n.children}
			return describeDirectory(ctx, l, n, o)
		}
		r := party(c, "gate", "closed", 0)
		o.State, o.Detail = "closed", "closed by "+r.who()+wording.ForHow(r.since, time.Now())
		o.Entries = append(o.Entries, r)
		return nil
	})
}

// describeOnce tells a once that is done from one that runs. Without a result there is only a node
// named lock, which may also be a plain lock.
func describeOnce(ctx context.Context, l *look, n *node, o *object) error {
	result := false
	err := l.each(ctx, n, n.children, func(c *node) (err error) {
		if c.name() == "result" {
			result = true
			o.State, o.Detail = "done", outcome(c)
			return nil
		}
		o.Entries, err = l.contenders(ctx, c.path)
		return err
	})
	if err != nil {
		return err
	}
	holders := o.in(zksync.Held)
	switch {
	case result:
	case len(holders) > 0:
		o.State, o.Detail = "running", strings.Replace(heldBy(holders, time.Now()), "held", "run", 1)+waiting(o)
	default:
		o.State, o.Detail = "not done", "not done, and nobody runs it"
	}
	if result {
		return nil
	}
	o.rest = n.children
	o.Detail += " (or a directory with a lock of that name)"
	return nil
}

// outcome puts the kept result into words.
func outcome(n *node) string {
	kept := decoded[struct {
		Value []byte
		Panic *string
	}](n)
	if kept.Panic != nil {
		return "done: it panicked"
	}
	var r onceRecord
	text := strings.TrimPrefix(wasDone("", kept.Value), " has been ")
	if json.Unmarshal(kept.Value, &r) != nil || r.At.IsZero() { // a program's
		text += wording.ForHow(time.UnixMilli(n.stat.Mtime), time.Now())
	}
	return text
}

func describeFlightKey(ctx context.Context, l *look, n *node, o *object) error {
	err := l.each(ctx, n, n.children, func(c *node) (err error) {
		o.Entries, err = l.contenders(ctx, c.path)
		return err
	})
	if err != nil {
		return err
	}
	o.State, o.Detail = "idle", "nobody runs it"
	if holders := o.in(zksync.Held); len(holders) > 0 {
		o.State, o.Detail = "running", strings.Replace(heldBy(holders, time.Now()), "held", "run", 1)+waiting(o)
	}
	if len(n.data) == 0 {
		o.Detail += " (or a directory with a lock of that name)"
	}
	return nil
}

func describeCondition(ctx context.Context, l *look, n *node, o *object) error {
	var waiters []string
	for _, c := range n.children {
		if isWaiter(c) {
			waiters = append(waiters, c)
		}
	}
	// They are ordered by their tokens, at the end of the names.
	slices.SortFunc(waiters, func(a, b string) int { return strings.Compare(a[len(a)-25:], b[len(b)-25:]) })
	signals := int64(0)
	for _, s := range decoded[struct{ Signals []struct{ N int64 } }](n).Signals {
		signals += s.N
	}
	o.State, o.Detail = "waiting", fmt.Sprintf("%s, %s not used up", wait(int64(len(waiters)), "nobody"), plural(signals, "signal"))
	if len(waiters) == 0 {
		o.State = "idle"
	}
	return l.parties(ctx, n, waiters, "waiter", o)
}

// wait says how many wait.
func wait(n int64, nobody string) string {
	switch n {
	case 0:
		return nobody + " waits"
	case 1:
		return "1 waits"
	}
	return fmt.Sprintf("%d wait", n)
}

// parties adds a row for each of these children of n, if rows are asked for.
func (l *look) parties(ctx context.Context, n *node, names []string, kind zksync.Kind, o *object) error {
	if !l.full || n == nil {
		return nil
	}
	if l.most > 0 {
		names = names[:min(len(names), l.most)]
	}
	return l.each(ctx, n, names, func(c *node) error {
		o.Entries = append(o.Entries, party(c, kind, zksync.Waiting, len(o.Entries)))
		return nil
	})
}
