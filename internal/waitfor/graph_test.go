package waitfor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// hold and wait are entries of the session s, made at the zxid at. text is the Under.
func hold(s int64, path string, at int64, text string) Entry {
	return entry(s, path, at, text, queue.Held)
}

func wait(s int64, path string, at int64, text string) Entry {
	return entry(s, path, at, text, queue.Waiting)
}

func entry(s int64, path string, at int64, text string, state queue.Standing) Entry {
	e := Entry{Path: path, Total: 2}
	e.Session, e.Token.Zxid, e.Under, e.State, e.Kind = s, at, text, state, queue.KindLock
	e.Permits, e.Node, e.Since = 1, fmt.Sprint(path, "/", at), now.Add(-time.Duration(at)*time.Second)
	e.Owner = node.Owner{Host: fmt.Sprint("web-", s), PID: int(s)}
	return e
}

func as(kind queue.Kind, e Entry) Entry {
	e.Kind = kind
	return e
}

func under(zxids ...int64) string {
	var tokens []node.Token
	for _, z := range zxids {
		tokens = append(tokens, node.Token{Zxid: z})
	}
	return node.FormatUnder(tokens)
}

func texts(t *testing.T, entries ...Entry) (lines []string, behind int) {
	cycles, rest := New(entries).Cycles()
	for _, c := range cycles {
		lines = append(lines, c.Text(now))
	}
	return lines, len(rest)
}

func TestTwoOwnersThatWaitForEachOtherAreACycle(t *testing.T) {
	want := []string{"web-2 pid 2 holds /b and waits for /a since 4s; web-1 pid 1 holds /a and waits for /b since 3s"}
	for _, said := range []struct{ one, two string }{{under(1), under(2)}, {"", ""}, {under(1), ""}} {
		got, behind := texts(t,
			hold(1, "/a", 1, ""), wait(2, "/a", 4, said.two), wait(3, "/a", 5, "none"),
			hold(2, "/b", 2, ""), wait(1, "/b", 3, said.one))
		require.Equal(t, want, got)
		require.Equal(t, 1, behind)
	}
}

// Goroutines of two sessions hold and wait, and none of them does both.
func TestCrossedLocksOfOwnersThatHoldNothingAreNoCycle(t *testing.T) {
	got, behind := texts(t,
		hold(1, "/a", 1, "none"), wait(2, "/a", 4, "none"),
		hold(2, "/b", 2, "none"), wait(1, "/b", 3, "none"))
	require.Empty(t, got)
	require.Zero(t, behind)
}

func TestAWaitIsTiedThroughTheHoldOfAnotherSession(t *testing.T) {
	nested := []Entry{
		hold(1, "/a", 1, "none"), wait(3, "/a", 5, under(3)),
		hold(4, "/b", 2, under(1)), // runs inside the command that holds /a, as the next one runs inside this
		hold(3, "/c", 3, "none"), wait(2, "/c", 4, under(2)),
	}
	got, _ := texts(t, nested...)
	require.Equal(t, []string{
		"web-3 pid 3 holds /c and waits for /a since 5s; web-1 pid 1 holds /a, and under it web-2 pid 2 waits for /c since 4s"}, got)
	// In the same session the wait names all that its owner holds: the owner may have released /a since.
	nested[2].Session = 2
	got, _ = texts(t, nested...)
	require.Empty(t, got)
}

func TestAReaderBehindAWriterWaitsForTheWriter(t *testing.T) {
	got, _ := texts(t,
		as(queue.KindRead, hold(1, "/a", 1, "none")), as(queue.KindWrite, wait(2, "/a", 3, under(2))), as(queue.KindRead, wait(3, "/a", 5, under(4))),
		hold(2, "/b", 2, "none"),
		hold(3, "/c", 4, "none"), wait(1, "/c", 6, under(1)))
	require.Equal(t, []string{
		"web-1 pid 1 holds /a and waits for /c since 6s; web-3 pid 3 holds /c and waits for /a since 5s; web-2 pid 2 is ahead and waits for /a since 3s"}, got)
}

func TestAWaiterForAPermitIsStuckOnlyIfAllHoldersAre(t *testing.T) {
	p := queue.KindPermit
	other := func(s int64) Entry { return as(p, hold(s, "/s", 2, "none")) }
	system := func(second Entry, more ...Entry) []Entry {
		return append([]Entry{
			as(p, hold(1, "/s", 1, "none")), second, as(p, wait(3, "/s", 6, under(3))),
			hold(3, "/c", 3, "none"), wait(1, "/c", 4, under(1))}, more...)
	}
	got, _ := texts(t, system(other(2))...)
	require.Empty(t, got, "the second holder releases")
	got, _ = texts(t, system(other(2), wait(2, "/c", 5, under(2)))...)
	require.Len(t, got, 2)
}

func TestAWaitForMorePermitsThanThereAreIsNoDeadlock(t *testing.T) {
	big := as(queue.KindPermit, wait(1, "/s", 1, "none"))
	big.Permits = 3
	got, behind := texts(t, big, as(queue.KindPermit, wait(2, "/s", 2, "none")))
	require.Empty(t, got)
	require.Zero(t, behind)
}

func TestACycleInTheMiddleOfALongQueueIsFound(t *testing.T) {
	entries := []Entry{hold(1, "/a", 1, "none"), hold(2, "/b", 2, "none"), wait(1, "/b", 3, under(1)), wait(2, "/a", 4, under(2))}
	for at := int64(10); at < 3000; at++ {
		entries = append(entries, wait(at, "/a", at, "none"))
	}
	got, behind := texts(t, entries...)
	require.Len(t, got, 1)
	require.Equal(t, 2990, behind)
}

// Without an Under nothing tells two goroutines of a process from one owner. At one lock they are the usual case.
func TestAProcessThatSaysNothingMayWaitForWhatItHoldsItself(t *testing.T) {
	p := queue.KindPermit
	got, behind := texts(t, hold(1, "/a", 1, ""), wait(1, "/a", 2, ""),
		as(p, hold(2, "/s", 3, "")), as(p, hold(3, "/s", 4, "")), as(p, wait(2, "/s", 5, "")), as(p, wait(3, "/s", 6, "")))
	require.Empty(t, got)
	require.Zero(t, behind)
}

// Two pools of processes that say nothing and wait for each other: each hold of one waits for each of its waits.
func TestPoolsThatSayNothingCostNoMoreThanTheirWaits(t *testing.T) {
	var entries []Entry
	add := func(make func(int64, string, int64, string) Entry, s int64, path string) {
		for range 100 {
			e := as(queue.KindPermit, make(s, path, int64(len(entries)), ""))
			e.Total = 100
			entries = append(entries, e)
		}
	}
	add(hold, 1, "/s")
	add(wait, 2, "/s")
	add(hold, 2, "/t")
	add(wait, 1, "/t")
	edges := New(entries).edges()
	require.Len(t, edges, 200)
	require.Less(t, len(edges[100]), 201, "and not for each hold")
}

// simulated plays the queues: it takes entries out until nothing moves, and returns the nodes that stay, and those that hold.
func simulated(entries []Entry) (stay, held map[string]bool) {
	stay, held = map[string]bool{}, map[string]bool{}
	for _, e := range entries {
		stay[e.Node], held[e.Node] = true, e.State == queue.Held
	}
	for moved := true; moved; {
		moved = false
		for i, e := range entries {
			if !stay[e.Node] {
				continue
			}
			if !held[e.Node] && len(queue.PolicyFor(e.Kind, e.Total)(ahead(entries[:i], e.Path, stay), asEntry(e))) == 0 {
				held[e.Node], moved = true, true
			}
			if held[e.Node] && !owes(entries, e, held) {
				delete(stay, e.Node)
				moved = true
			}
		}
	}
	return stay, held
}

func asEntry(e Entry) queue.Entry {
	return queue.Entry{Name: e.Node, Kind: e.Kind, Weight: e.Permits}
}

func ahead(entries []Entry, path string, stay map[string]bool) (all []queue.Entry) {
	for _, e := range entries {
		if e.Path == path && stay[e.Node] {
			all = append(all, asEntry(e))
		}
	}
	return all
}

// owes reports whether the owner of e waits for something before it releases e.
func owes(entries []Entry, e Entry, held map[string]bool) bool {
	return slices.ContainsFunc(entries, func(w Entry) bool {
		if held[w.Node] || w.State == queue.Held {
			return false
		}
		if w.Under == "" {
			return w.Session == e.Session && w.Path != e.Path
		}
		tokens, _ := node.ParseUnder(w.Under)
		return e.State == queue.Held && slices.Contains(tokens, e.Token)
	})
}

// system draws queues of every kind. Holds are those that the rules of their queue grant.
func system(t *rapid.T) (all []Entry) {
	kinds := [][]queue.Kind{{queue.KindLock}, {queue.KindRead, queue.KindWrite}, {queue.KindPermit}}
	silent := rapid.SliceOfN(rapid.Bool(), 4, 4).Draw(t, "silent")
	var holds []Entry
	at := int64(0)
	for n := range rapid.IntRange(1, 4).Draw(t, "paths") {
		path := fmt.Sprint("/", n)
		kind := rapid.SampledFrom(kinds).Draw(t, "kinds")
		total := rapid.Int64Range(1, 3).Draw(t, "total")
		var queued []queue.Entry
		for range rapid.IntRange(1, 4).Draw(t, "entries") {
			at++
			e := wait(rapid.Int64Range(0, 3).Draw(t, "session"), path, at, "none")
			e.Kind, e.Total, e.Permits = rapid.SampledFrom(kind).Draw(t, "kind"), total, rapid.Int64Range(1, total).Draw(t, "permits")
			if len(queue.PolicyFor(e.Kind, total)(queued, asEntry(e))) == 0 {
				e.State = queue.Held
				holds = append(holds, e)
			}
			queued = append(queued, asEntry(e))
			all = append(all, e)
		}
	}
	for i, e := range all {
		if silent[e.Session] {
			all[i].Under = ""
			continue
		}
		var named []int64
		for _, h := range holds {
			if h.Session == e.Session && e.State == queue.Waiting && rapid.Bool().Draw(t, "named") {
				named = append(named, h.Token.Zxid)
			}
		}
		all[i].Under = under(named...)
	}
	return all
}

func TestTheReductionIsWhatHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := system(t)
		g := New(entries)
		stay, held := simulated(entries)
		part := map[string]bool{}
		cycles, behind := g.Cycles()
		for _, c := range cycles {
			for _, s := range c.Steps {
				part[s.Wait.Node] = true
			}
		}
		for _, e := range behind {
			require.False(t, part[e.Node])
			part[e.Node] = true
		}
		for i, e := range entries {
			require.Equal(t, stay[e.Node], g.Stuck(i), "%+v", e)
			// Every wait is granted, or a part of a cycle, or behind one: nothing here asks for more than there is.
			require.Equal(t, !held[e.Node], part[e.Node], "%+v", e)
		}
	})
}
