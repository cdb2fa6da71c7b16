package elements

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// element is what the name of its node says:
//
//	e[.p<priority>][.d<due>].<8 random hexadecimal digits>.<sequence number>
//
// The servers give the number, in the order in which they make the nodes. The random digits matter at the end of the
// numbers, where the servers give the last one again and again.
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
	b.WriteString("e.")
	if priority != 0 {
		b.WriteString("p" + strconv.Itoa(priority) + ".")
	}
	if due != 0 {
		b.WriteString("d" + strconv.FormatInt(due, 10) + ".")
	}
	var random [4]byte
	rand.Read(random[:])
	return b.String() + hex.EncodeToString(random[:]) + "."
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

// byDue compares the times at which elements are due.
func byDue(a, b element) int { return cmp.Compare(a.due, b.due) }
