package conformance

import (
	"fmt"

	"pgregory.net/rapid"
)

// step is one thing that one of the sessions of a program does.
type step struct {
	who  int
	what string
	run  func(p *player)
}

// The nodes that programs work on are few, so that the sessions get in each other's way. The
// first one is never removed.
var nodes = []string{"~", "~/a", "~/b", "~/a/x", "~/a/y", "~/a/x/1", "~/b/z", "~/a/s-0000000000", "~/a/s-0000000001", "~/c", "~/c/k"}

// lists of access control. Whoever cleans up is in each.
var lists = [][]grant{
	open, open, open,
	{anyone(permRead), {permAll, "digest", rootID}},
	{{permAll, "digest", aliceID}, {permAll, "digest", rootID}},
	{anyone(permAll &^ permRead), {permAll, "digest", rootID}},
	{anyone(permRead | permCreate), {permAll, "digest", aliceID}, {permAll, "digest", rootID}},
	{{permAll, "auth", ""}, {permAll, "digest", rootID}},
	nil,
}

// pick draws one of several values; the first is the simplest.
func pick[T any](t *rapid.T, label string, from ...T) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(t, label)]
}

func drawPath(t *rapid.T) string   { return pick(t, "path", nodes...) }
func drawVersion(t *rapid.T) int32 { return pick[int32](t, "version", -1, -1, -1, -1, 0, 1, 2) }
func drawData(t *rapid.T) string   { return pick(t, "data", "", "x", "data", null) }
func drawFlags(t *rapid.T) int32   { return pick[int32](t, "flags", 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 9) }

// parent is where sequential nodes are made.
func drawPrefix(t *rapid.T, flags int32) string {
	if flags == sequential || flags == ephemeralSeq {
		return pick(t, "prefix", "~/a/s-", "~/a/s-", "~/b/", "~/a/x/n")
	}
	return drawPath(t)
}

func drawCreate(t *rapid.T) op {
	flags := drawFlags(t)
	o := createACL(drawPrefix(t, flags), drawData(t), flags, lists[max(0, rapid.IntRange(-6, len(lists)-1).Draw(t, "list"))])
	switch rapid.IntRange(0, 7).Draw(t, "create") {
	case 5:
		o.code, o.name = 15, "create2"
	case 6:
		return container(drawPath(t), "")
	case 7:
		return createTTL(drawPath(t), "", pick[int32](t, "ttl", ttlFlag, ttlFlag, ttlSeqFlag, flags), 60000)
	}
	return o
}

// drawWrite draws what may be a part of a transaction.
func drawWrite(t *rapid.T) op {
	switch rapid.IntRange(0, 9).Draw(t, "write") {
	case 0, 1, 2, 3:
		return drawCreate(t)
	case 4, 5:
		return remove(pick(t, "gone", nodes[1:]...), drawVersion(t))
	default:
		return set(drawPath(t), drawData(t), drawVersion(t))
	}
}

func drawPart(t *rapid.T) op {
	if rapid.IntRange(0, 4).Draw(t, "part") == 4 {
		return check(drawPath(t), drawVersion(t))
	}
	return drawWrite(t)
}

func drawRead(t *rapid.T) op {
	watch := rapid.Bool().Draw(t, "watch")
	p := drawPath(t)
	switch rapid.IntRange(0, 9).Draw(t, "read") {
	case 0, 1:
		return exists(p, watch)
	case 2, 3:
		return get(p, watch)
	case 4:
		return list(p, watch)
	case 5, 6:
		return list2(p, watch)
	case 7:
		return getACL(p)
	case 8:
		return pick(t, "rare", syncOf(p), ephemerals(p), allChildren(p), whoAmI())
	}
	return multiRead(some(t, func(t *rapid.T) op {
		return pick(t, "get", get, list)(drawPath(t), rapid.Bool().Draw(t, "watch"))
	})...)
}

func some(t *rapid.T, draw func(*rapid.T) op) []op {
	parts := make([]op, rapid.IntRange(1, 4).Draw(t, "parts"))
	for i := range parts {
		parts[i] = draw(t)
	}
	return parts
}

func drawWatchOp(t *rapid.T) op {
	p := drawPath(t)
	switch rapid.IntRange(0, 5).Draw(t, "watching") {
	case 0, 1, 2:
		return addWatch(p, int32(rapid.IntRange(0, 1).Draw(t, "mode")))
	case 3:
		return checkWatches(p, int32(rapid.IntRange(1, 5).Draw(t, "type")))
	}
	return removeWatches(p, int32(rapid.IntRange(1, 5).Draw(t, "type")))
}

func drawRequest(t *rapid.T) op {
	switch n := rapid.IntRange(0, 29).Draw(t, "request"); {
	case n < 9:
		return drawRead(t)
	case n < 18:
		return drawWrite(t)
	case n < 22:
		return multi(some(t, drawPart)...)
	case n < 26:
		return drawWatchOp(t)
	case n < 28:
		return setACL(drawPath(t), drawVersion(t), lists[rapid.IntRange(0, len(lists)-1).Draw(t, "list")]...)
	case n < 29:
		return auth("digest", pick(t, "who", alice, bob))
	}
	return check(drawPath(t), 99) // a check that succeeds is not answered by the real server
}

// drawBurst draws what may be in flight together with others: what the answer to the next request depends on
// only when it has been applied, not when it is on its way, is left out.
func drawBurst(t *rapid.T) op {
	switch rapid.IntRange(0, 3).Draw(t, "burst") {
	case 0:
		return drawRead(t)
	case 1:
		return drawWatchOp(t)
	case 2:
		return multi(some(t, drawPart)...)
	}
	return drawWrite(t)
}

func drawPaths(t *rapid.T) []string {
	paths := make([]string, rapid.IntRange(0, 3).Draw(t, "paths"))
	for i := range paths {
		paths[i] = drawPath(t)
	}
	return paths
}

// drawStep draws one step. The simplest is to do nothing, which is what a failing program is reduced to.
func drawStep(t *rapid.T) step {
	who := rapid.IntRange(0, 2).Draw(t, "session")
	s := step{who: who}
	switch n := rapid.IntRange(0, 39).Draw(t, "step"); {
	case n == 0:
		s.what, s.run = "", func(*player) {}
	case n < 35:
		o := drawRequest(t)
		s.what, s.run = o.String(), func(p *player) { p.c.do(o) }
	case n == 35:
		all := some(t, drawBurst)
		s.what, s.run = fmt.Sprintf("in flight together: %v", all), func(p *player) { p.burst(all) }
	case n == 36:
		s.what, s.run = "closes its session and opens another", (*player).reopen
	case n == 37:
		s.what, s.run = "moves to another connection", (*player).move
	default:
		data, exist, child, stay, deep := drawPaths(t), drawPaths(t), drawPaths(t), drawPaths(t), drawPaths(t)
		back := rapid.IntRange(0, 3).Draw(t, "back")
		both := rapid.Bool().Draw(t, "setWatches2")
		s.what = fmt.Sprintf("comes back after a disconnect and sets watches: %v %v %v %v %v", data, exist, child, stay, deep)
		s.run = func(p *player) {
			since := p.c.seen - int64(back) // of the old connection: the new one has seen nothing yet
			p.comeBack()
			if both {
				p.c.do(setWatches2(since, data, exist, child, stay, deep))
			} else {
				p.c.do(setWatches(since, data, exist, child))
			}
		}
	}
	return s
}
