package elements

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// element is what the name of its node says:
//
//	e[.p<priority>][.d<due>].<8 random hexadecimal digits>[-<enqueued>-<deliveries>-<forgiven>].<sequence number>
//
// The servers give the number, in the order in which they make the nodes. The random digits matter at the end of the
// numbers, where the servers give the last one again and again. The part in the middle is that of an element that was moved: see
// [origin]. Earlier versions read such a name, too, but count the deliveries from 1 again.
type element struct {
	name     string
	priority int
	due      int64 // by the servers' clock, in milliseconds; 0 if it was not delayed
	seq      int32
	tried    bool  // to be delivered, from this view
	czxid    int64 // known only where the number does not tell the order
}

// namePrefix is the name of a node that is to be made, without the number.
func namePrefix(priority int, due int64) string {
	var b strings.Builder
	writePlace(&b, priority, due)
	var random [4]byte
	rand.Read(random[:])
	return b.String() + hex.EncodeToString(random[:]) + "."
}

func writePlace(b *strings.Builder, priority int, due int64) {
	b.WriteString("e.")
	if priority != 0 {
		b.WriteString("p" + strconv.Itoa(priority) + ".")
	}
	if due != 0 {
		b.WriteString("d" + strconv.FormatInt(due, 10) + ".")
	}
}

// origin is what stays of an element when its node is replaced by one of another priority or due time. It has the digits and the number
// of the first node, so its identity and its place.
type origin struct {
	digits, seq string
	enqueued    int64 // by the servers' clock, in milliseconds; 0 if the node is the first one
	deliveries  int   // before the node was made
	forgiven    int   // those of them that do not count as attempts
}

// origin parses that. It is asked for elements that were read, so that a listing of many names keeps none of it.
func (el element) origin() (o origin) {
	parts := strings.Split(el.name, ".")
	o.seq = parts[len(parts)-1]
	fields := strings.Split(parts[len(parts)-2], "-")
	o.digits = fields[0]
	if len(fields) != 4 {
		return o
	}
	var numbers [3]uint64
	for i := range numbers {
		var err error
		if numbers[i], err = strconv.ParseUint(fields[i+1], 10, 62); err != nil {
			return o
		}
	}
	const most = math.MaxInt32 // of deliveries: another program may have written anything
	o.enqueued, o.deliveries = int64(numbers[0]), int(min(numbers[1], most))
	o.forgiven = int(min(numbers[2], uint64(o.deliveries)))
	return o
}

// id names an element as long as it is in the queue, and as a dead letter.
func (o origin) id() string { return o.digits + "." + o.seq }

// attempts is how often an element was delivered, when its present node has this version.
func (o origin) attempts(version int32) int { return o.deliveries - o.forgiven + int(version) }

// name is the name of the node that replaces one of an element. As deliveries grow with each one, no name is used twice.
func (o origin) name(priority int, due int64) string {
	var b strings.Builder
	writePlace(&b, priority, due)
	fmt.Fprintf(&b, "%s-%d-%d-%d.%s", o.digits, o.enqueued, o.deliveries, o.forgiven, o.seq)
	return b.String()
}

// parseElement reads the name of a node. It reports false for nodes of other programs.
func parseElement(name string) (el element, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) < 3 || parts[0] != "e" {
		return el, false
	}
	el.name = name
	for _, p := range parts[1 : len(parts)-2] {
		var err error
		switch {
		case strings.HasPrefix(p, "p"):
			el.priority, err = strconv.Atoi(p[1:])
		case strings.HasPrefix(p, "d"):
			el.due, err = strconv.ParseInt(p[1:], 10, 64)
		default:
			return el, false
		}
		if err != nil {
			return el, false
		}
	}
	el.seq, ok = queue.ParseSequence(parts[len(parts)-1])
	return el, ok
}

// claimName is the name of the node that claims an element for its delivery of this number. It is used once, as long
// as the node of the element exists: the version of that node counts the deliveries.
func claimName(element string, attempt int32) string {
	return element + "." + strconv.Itoa(int(attempt))
}

// claimed is the name of the element that a node claims.
func claimed(claim string) string {
	if at := strings.LastIndexByte(claim, '.'); at >= 0 {
		return claim[:at]
	}
	return ""
}

// exhausted reports whether the number of an element does not give its order: see package queue.
func (el element) exhausted() bool { return el.seq < 0 || el.seq == math.MaxInt32 }

// delayed reports whether an element may not be due yet.
func (el element) delayed() bool { return el.due != 0 }

// sorted puts elements into the order in which they are delivered.
func sorted(list []element) []element {
	if !slices.IsSortedFunc(list, inOrder) {
		slices.SortFunc(list, inOrder)
	}
	return list
}

// inOrder compares elements: the smallest priority first, and among equal ones the order in which the servers made the
// nodes. Numbers that do not show that come after all others; there the czxids count.
func inOrder(a, b element) int {
	if c := cmp.Compare(a.priority, b.priority); c != 0 {
		return c
	}
	switch x, y := a.exhausted(), b.exhausted(); {
	case x && y:
		return cmp.Compare(a.czxid, b.czxid)
	case x:
		return 1
	case y:
		return -1
	}
	return cmp.Compare(a.seq, b.seq)
}

// latestFirst compares the times at which elements are due.
func latestFirst(a, b element) int { return cmp.Compare(b.due, a.due) }
