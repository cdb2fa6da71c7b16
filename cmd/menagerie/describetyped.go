package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// This file describes the types whose nodes are below a child that is named by the type: see internal/layout.

// typed is the kind of such a type. describe is given that child.
func typed(name, child string, describe func(ctx context.Context, l *look, n *node, o *object) error) kind {
	return kind{
		name:  name,
		looks: func(n *node) bool { return layout.Typed(n.children) == child },
		describe: func(ctx context.Context, l *look, n *node, o *object) error {
			base, err := l.child(ctx, n, child)
			if err != nil {
				return err
			}
			if base == nil { // it has gone since
				o.State, o.Detail = "empty", "removed just now"
				return nil
			}
			return describe(ctx, l, base, o)
		},
		part: named(child),
	}
}

// typedKinds are told by one name, so they come first.
var typedKinds = []kind{
	typed("counter", layout.Int64, describeNumber),
	typed("sequence", layout.Sequence, describeNumber),
	typed("value", layout.Value, describeValue),
	typed("slots", layout.Slots, describeSlots),
	typed("map", layout.Map, describeTable("key")),
	typed("set", layout.Set, describeTable("key")),
	typed("queue", layout.Queue, describeElements),
	typed("group", layout.Group, describeGroup),
	typed("schedule", layout.Cron, describeSchedule),
	typed("durable lock", layout.Durable, describeDurable),
	typed("promise", layout.Promise, describePromise),
}

func describeNumber(ctx context.Context, l *look, n *node, o *object) error {
	value, err := l.child(ctx, n, "value")
	if err != nil {
		return err
	}
	text := "0"
	if value != nil && len(value.data) > 0 {
		text = clean(string(value.data))
	}
	o.State, o.Detail = "value", text
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		o.Count = &v
	}
	return nil
}

func describeValue(ctx context.Context, l *look, n *node, o *object) error {
	value, err := l.child(ctx, n, "value")
	switch {
	case err != nil:
		return err
	case value == nil || len(value.children) > 0: // a child says that there is no value
		o.State, o.Detail = "absent", "no value"
	default:
		o.State, o.Detail = "value", fmt.Sprintf("%s, changed %s ago", plural(int64(len(value.data)), "byte"), wording.Shortly(time.Since(time.UnixMilli(value.stat.Mtime))))
	}
	return nil
}

func describeSlots(ctx context.Context, l *look, n *node, o *object) error {
	taken, err := l.child(ctx, n, "taken")
	if err != nil {
		return err
	}
	if taken != nil {
		if err := l.parties(ctx, taken, taken.children, "slot", o); err != nil {
			return err
		}
		for i := range o.Entries {
			o.Entries[i].State = zksync.Held
		}
	}
	waits, err := l.child(ctx, n, "queue")
	if err != nil {
		return err
	}
	total := decoded[struct{ Slots int64 }](n).Slots
	o.of(size(taken), total)
	o.State, o.Detail = "slots", fmt.Sprintf("%d of %s taken%s", size(taken), plural(total, "slot"), more(size(waits), "waits", "wait"))
	return nil
}

// describeTable describes a map or a set, whose entries are in buckets.
func describeTable(what string) func(ctx context.Context, l *look, n *node, o *object) error {
	return func(ctx context.Context, l *look, n *node, o *object) error {
		buckets, err := l.child(ctx, n, "keys")
		if err != nil {
			return err
		}
		count := int64(0)
		if buckets != nil {
			err = l.each(ctx, buckets, buckets.children, func(b *node) error { count += size(b); return nil })
		}
		o.Count = &count
		o.State, o.Detail = "entries", plural(count, what)
		return err
	}
}

func describeElements(ctx context.Context, l *look, n *node, o *object) error {
	sizes := map[string]int64{}
	for _, name := range []string{"elements", "claims", "takers", "putters"} {
		child, err := l.child(ctx, n, name)
		if err != nil {
			return err
		}
		sizes[name] = size(child)
	}
	o.State, o.Detail = "elements", plural(sizes["elements"], "element")
	count := sizes["elements"]
	o.Count = &count
	if capacity := decoded[struct{ Capacity int64 }](n).Capacity; capacity > 0 {
		o.of(count, capacity)
		o.Detail = fmt.Sprintf("%d of at most %s", sizes["elements"], plural(capacity, "element"))
	}
	if d := sizes["claims"]; d > 0 {
		o.Detail += fmt.Sprintf(", %d of them delivered and not acknowledged", d)
	}
	o.Detail += more(sizes["takers"], "waits for an element", "wait for an element")
	o.Detail += more(sizes["putters"], "waits for room", "wait for room")
	return nil
}

func describeGroup(ctx context.Context, l *look, n *node, o *object) error {
	members, err := l.child(ctx, n, "members")
	if err != nil {
		return err
	}
	if members != nil && l.full {
		err := l.each(ctx, members, members.children, func(m *node) error {
			id, _ := url.PathUnescape(m.path[len(members.path)+1:]) // empty if it is none of ours
			o.Entries = append(o.Entries, contenderRow{
				Kind: "member", State: "living", ID: clean(id), Node: m.path, Position: len(o.Entries),
				Since: timestamp(time.UnixMilli(m.stat.Ctime)), since: time.UnixMilli(m.stat.Ctime), Session: sessionText(m.stat.EphemeralOwner),
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	count := size(members)
	o.Count = &count
	o.State, o.Detail = "members", plural(count, "member")
	return nil
}

func describeSchedule(ctx context.Context, l *look, n *node, o *object) error {
	o.State, o.Detail = "schedule", plural(size(n), "job")
	count := size(n)
	o.Count = &count
	type run struct {
		Scheduled, Ended time.Time
		Err              string
	}
	return l.each(ctx, n, n.children, func(job *node) error {
		record, err := l.child(ctx, job, "record")
		if err != nil {
			return err
		}
		name := job.path[len(n.path)+1:]
		row := contenderRow{Kind: "job", State: "idle", ID: clean(name), Node: job.path, Position: len(o.Entries)}
		text := fmt.Sprintf("%s (%s)", clean(name), clean(decoded[struct{ Spec string }](job).Spec))
		if record != nil && len(record.data) > 0 {
			last := decoded[run](record)
			switch {
			case last.Scheduled.IsZero():
			case last.Ended.IsZero() && last.Err == "":
				row.State, row.Since = "running", timestamp(last.Scheduled)
				text += ", runs the tick of " + timestamp(last.Scheduled)
			case last.Err != "":
				row.Since = timestamp(last.Scheduled)
				text += ", failed at " + timestamp(last.Scheduled) + ": " + shorten(clean(last.Err))
			default:
				row.Since = timestamp(last.Scheduled)
				text += ", ran at " + timestamp(last.Scheduled)
			}
		}
		o.Entries = append(o.Entries, row)
		o.Detail += "; " + text
		return nil
	})
}

func describeDurable(ctx context.Context, l *look, n *node, o *object) error {
	type hold struct {
		Token, Owner, Note string
		Since              time.Time
	}
	type state struct {
		Hold   *hold
		Before *struct{ Owner, By, Why string }
	}
	st := decoded[state](n)
	waiters, err := l.child(ctx, n, "queue")
	if err != nil {
		return err
	}
	switch h := st.Hold; {
	case h == nil:
		o.State, o.Detail = "free", "free"
		if b := st.Before; b != nil && b.By != "" {
			o.Detail += fmt.Sprintf("; the hold of %s was broken by %s: %s", clean(b.Owner), clean(b.By), shorten(clean(b.Why)))
		}
	default:
		open, err := l.child(ctx, n, "open-"+h.Token)
		if err != nil {
			return err
		}
		row := contenderRow{Kind: zksync.KindLock, State: zksync.Held, Owner: ownerRow{Name: clean(h.Owner)}, Since: timestamp(h.Since), Token: clean(h.Token), Node: n.path, since: h.Since}
		process := ", and no process has it open"
		if open != nil {
			who := ownerOf(open.data)
			row.Owner.Host, row.Owner.PID = who.Host, who.PID
			row.Session = sessionText(open.stat.EphemeralOwner)
			process = ", open in " + row.who()
		}
		o.Entries = append(o.Entries, row)
		o.State, o.Detail = "held", "held by "+cmp.Or(clean(h.Owner), "somebody")+wording.ForHow(h.Since, time.Now())+process
		if h.Note != "" {
			o.Detail += " (" + shorten(clean(h.Note)) + ")"
		}
	}
	o.Detail += more(size(waiters), "waits", "wait")
	return nil
}

func describePromise(_ context.Context, _ *look, n *node, o *object) error {
	type state struct {
		Done   bool
		Failed *string
		Value  json.RawMessage
	}
	switch st := decoded[state](n); {
	case !st.Done:
		o.State, o.Detail = "pending", "not decided yet"
	case st.Failed != nil:
		o.State, o.Detail = "failed", "failed: "+shorten(clean(*st.Failed))
	default:
		o.State, o.Detail = "complete", "complete"
	}
	return nil
}

// more says how many wait: "; 2 wait for room".
func more(n int64, one, many string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 " + one
	}
	return fmt.Sprintf("; %d %s", n, many)
}
