package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// normaliser replaces what differs between two servers by what must not: which zxids are the same and
// in which order, which sessions are the same, which transaction a time belongs to.
type normaliser struct {
	w        *world
	ranks    []int64 // in a shared world: the zxids of the scenario's own, sorted
	sessions map[int64]int
	secrets  map[string]int
	times    map[int64]int64 // by zxid
}

func newNormaliser(w *world) *normaliser {
	n := &normaliser{w: w, sessions: map[int64]int{0: 0}, secrets: map[string]int{}, times: map[int64]int64{}}
	for _, e := range w.entries {
		for _, f := range e.fields {
			if f.kind == zxid && f.num > w.origin {
				n.ranks = append(n.ranks, f.num)
			}
		}
	}
	slices.Sort(n.ranks)
	n.ranks = slices.Compact(n.ranks)
	return n
}

// lines renders a transcript.
func (w *world) lines() []string {
	n := newNormaliser(w)
	out := make([]string, 0, len(w.entries))
	for _, e := range w.entries {
		out = append(out, n.line(e))
	}
	return out
}

func (n *normaliser) line(e entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-2s %s %s", e.who, e.dir, e.what)
	for _, f := range e.fields {
		fmt.Fprintf(&b, " %s=%s", f.name, n.value(f))
	}
	return strings.ReplaceAll(b.String(), n.w.base, "~")
}

func (n *normaliser) value(f field) string {
	switch f.kind {
	case zxid, seenZxid:
		return n.zxid(f.num)
	case sessionID:
		return "s" + fmt.Sprint(number(n.sessions, f.num))
	case secret:
		if strings.Trim(f.text, "\x00") == "" {
			return fmt.Sprintf("%d zeros", len(f.text))
		}
		return fmt.Sprintf("p%d(%d bytes)", number(n.secrets, f.text)+1, len(f.text))
	case instant:
		return n.instant(f)
	}
	return f.text
}

// number numbers things in the order of their first appearance.
func number[K comparable](m map[K]int, k K) int {
	i, ok := m[k]
	if !ok {
		i = len(m)
		m[k] = i
	}
	return i
}

// zxid names a transaction by its distance from the first of the scenario, or, if others make
// transactions too, by its place among the scenario's own: what a read has seen is then the last of
// these that it can have seen.
func (n *normaliser) zxid(z int64) string {
	switch {
	case z <= 0:
		return fmt.Sprint(z)
	case z < n.w.origin:
		return "old"
	case n.w.exact:
		return fmt.Sprintf("z%d", z-n.w.origin)
	}
	i, found := slices.BinarySearch(n.ranks, z)
	if found {
		i++
	}
	return fmt.Sprintf("#%d", i)
}

// instant checks a time against the transaction that it is the time of: all that is left of it is
// whether it is right.
func (n *normaliser) instant(f field) string {
	first, known := n.times[f.of]
	if !known {
		n.times[f.of] = f.num
		first = f.num
	}
	now := time.Now()
	switch {
	case f.of < n.w.origin:
		if f.num == 0 {
			return "0"
		}
		return "old"
	case f.num != first:
		return fmt.Sprintf("not that of %s (%+d ms)", n.zxid(f.of), f.num-first)
	case f.num < n.w.began.Add(-time.Minute).UnixMilli() || f.num > now.Add(time.Minute).UnixMilli():
		return "not of these days"
	}
	for z, t := range n.times {
		if z >= n.w.origin && (z < f.of && t > f.num || z > f.of && t < f.num) {
			return "out of order"
		}
	}
	return "ok"
}
