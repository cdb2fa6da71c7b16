package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
)

// Kind is what an entry of a queue asks for.
type Kind string

const (
	// KindLock asks to be alone, and never turns into anything else.
	KindLock Kind = "lock"
	// KindRead asks to be with other readers only.
	KindRead Kind = "read"
	// KindWrite asks to be alone, and may become a reader in its place.
	KindWrite Kind = "write"
	// KindPermit asks for a number of permits.
	KindPermit Kind = "permit"
)

// Entry is one contender of a queue: an ephemeral sequential node, as its name describes it. Names of
// other libraries are understood if they queue in the same directory by the same rules; see ParseEntry.
type Entry struct {
	Name   string // the node's name, without its directory
	UUID   string // chosen by the client for each attempt; the node is found by it when the reply was lost
	Kind   Kind
	Weight int64 // permits asked for; 1 for the other kinds
	Seq    int32 // the number that the servers gave it
	Czxid  int64 // the creation zxid; 0 until somebody has asked the servers
}

// How the names of nodes show the kind. The marks of the first group stand behind "_c_<uuid>"
// (Curator, go-zookeeper, this module), those of the second behind the bare uuid of kazoo.
var (
	protectedMarks = []mark{{"-lock-", KindLock}, {"-__READ__", KindRead}, {"-__WRIT__", KindWrite}}
	kazooMarks     = []mark{{"__lock__", KindWrite}, {"__rlock__", KindRead}, {"-lock-", KindLock}}
)

// mark is what stands between the uuid and the number in a name of this kind.
type mark struct {
	text string
	kind Kind
}

const (
	permitMark  = "-permit-"
	uuidLen     = 36 // 8-4-4-4-12
	BareUUIDLen = 32
)

// AsideEnd ends the name of a node beside the entries. Other libraries read what follows the last "lock-" as the number
// of a contender: go-zookeeper fails if there is none, and no contender waits for the last number that there is.
const AsideEnd = "_lock-2147483647"

// ParseEntry reads the name of a child of a queue. It reports false for every name
// that does not have exactly one of these forms. Such a child is no contender:
//
//	_c_<uuid>-lock-<seq>          Curator, go-zookeeper, this module
//	_c_<uuid>-__READ__<seq>       Curator, this module
//	_c_<uuid>-__WRIT__<seq>       Curator, this module
//	_c_<uuid>-permit-<n>-<seq>    this module
//	<32 hex>__lock__<seq>         kazoo, which does not tell writers from plain locks
//	<32 hex>__rlock__<seq>        kazoo
//	<32 hex>-lock-<seq>           kazoo, told to use that name
//
// <uuid> has the form 8-4-4-4-12, or is 32 hexadecimal digits.
func ParseEntry(name string) (Entry, bool) {
	e := Entry{Name: name, Weight: 1}
	rest, protected := strings.CutPrefix(name, node.Prefix(""))
	marks := kazooMarks
	if protected {
		marks = protectedMarks
		e.UUID, rest = CutUUID(rest, uuidLen)
	}
	if e.UUID == "" {
		e.UUID, rest = CutUUID(rest, BareUUIDLen)
	}
	if e.UUID == "" {
		return Entry{}, false
	}
	e.Kind, rest = cutMark(rest, marks)
	if e.Kind == "" && protected {
		e.Weight, rest = cutPermit(rest)
		e.Kind = KindPermit
	}
	var ok bool
	if e.Seq, ok = ParseSequence(rest); !ok || e.Kind == "" || e.Weight < 1 {
		return Entry{}, false
	}
	return e, true
}

// Sealed reports whether the node at path is an entry that only its maker writes to: see [node.Sealed].
func Sealed(path string) bool {
	e, ok := ParseEntry(path[strings.LastIndexByte(path, '/')+1:])
	return ok && e.sealed()
}

// sealed reports whether a change of the node says that its maker held alone and has left.
func (e Entry) sealed() bool { return e.exclusive() && node.Sealed(e.UUID) }

// CutUUID splits a uuid of n characters off s, or returns "" and all of s.
func CutUUID(s string, n int) (uuid, rest string) {
	if len(s) < n {
		return "", s
	}
	for i := range n {
		if dash := n == uuidLen && (i == 8 || i == 13 || i == 18 || i == 23); dash && s[i] != '-' || !dash && !hexDigits[s[i]] {
			return "", s
		}
	}
	return s[:n], s[n:]
}

var hexDigits = func() (is [256]bool) {
	for _, c := range []byte("0123456789abcdefABCDEF") {
		is[c] = true
	}
	return is
}()

// cutMark splits the mark of a kind off s. It returns no kind if there is none.
func cutMark(s string, marks []mark) (Kind, string) {
	for _, m := range marks {
		if rest, ok := strings.CutPrefix(s, m.text); ok {
			return m.kind, rest
		}
	}
	return "", s
}

// cutPermit splits "-permit-<n>-" off s. The weight is 0 if s does
// not begin with that, or if n is not written as strconv writes it.
func cutPermit(s string) (weight int64, rest string) {
	rest, ok := strings.CutPrefix(s, permitMark)
	if !ok {
		return 0, s
	}
	digits, rest, ok := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || strconv.FormatInt(n, 10) != digits {
		return 0, s
	}
	return n, rest
}

// formatSequence writes n as the servers do (Java's "%010d"): ten characters,
// a minus sign included. Only numbers below -999999999 have eleven.
func formatSequence(n int32) string { return fmt.Sprintf("%010d", n) }

// sequenceLen is the length of a sequence number in a name. Negative numbers below -999999999 are one longer.
const sequenceLen = 10

// ParseSequence accepts exactly what formatSequence writes. It does not call formatSequence to
// compare: formatting every name of a long listing would cost more than the rest of reading it.
func ParseSequence(s string) (int32, bool) {
	if len(s) != 10 && len(s) != 11 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, false
	}
	asWritten := len(s) == 10 && s[0] != '+' && s[0] != '-'
	if n < 0 {
		asWritten = len(s) == 10 || s[1] != '0'
	}
	return int32(n), asWritten
}

// entryPrefix returns the name with which a sequential node is created;
// the server appends the number. The weight matters for permits only.
func entryPrefix(kind Kind, uuid string, weight int64) string {
	if kind == KindPermit {
		return node.Prefix(uuid) + permitMark + strconv.FormatInt(weight, 10) + "-"
	}
	for _, m := range protectedMarks {
		if m.kind == kind {
			return node.Prefix(uuid) + m.text
		}
	}
	panic("zksync: no node name for kind " + strconv.Quote(string(kind)))
}

// limitMargin says how far before the end of the sequence numbers a queue prepares for the end: a
// listing no longer drops names by their numbers (notBehind), and orders exhausted entries by creation
// zxid (sortEntries). It does so early, so that this has been tried out long before it matters.
const limitMargin = 1 << 16

// nearLimit reports whether sequence numbers soon stop ordering entries, or
// have stopped already. At the end the servers give the last number again
// and again, and negative numbers to creates that are in flight together.
func nearLimit(seq int32) bool { return seq < 0 || seq >= math.MaxInt32-limitMargin }

// exhausted reports whether seq says nothing about the order any more. Every
// entry with such a number was created after every entry with another number.
func exhausted(seq int32) bool { return seq < 0 || seq == math.MaxInt32 }

// Ordered reports whether e's number tells e's position in the queue.
// Only then can another node with the same number take its place.
func (e Entry) Ordered() bool { return !exhausted(e.Seq) }

// sortEntries puts entries into the order in which the servers queued them. As soon as nearLimit is true
// of any entry, byCzxid must be true, and the czxid of every entry with an exhausted number must be known.
//
// Even then, entries whose numbers are not exhausted are ordered by their numbers. There are three
// reasons. The numbers are right. A client that listed a moment earlier, and had no reason yet to look at
// zxids, sees the same order. And the zxid is wrong for one kind of node: the read node of a downgraded
// writer has the writer's place and number, but is created after writers that queue behind it.
func sortEntries(entries []Entry, byCzxid bool) {
	compare := func(a, b Entry) int { return compareEntries(a, b, byCzxid) }
	if byCzxid {
		slices.SortFunc(entries, compare)
		return
	}
	// There may be ten thousand, and an entry is large: so their numbers are sorted, and then the few that share one.
	order := make([]uint64, len(entries))
	for i, e := range entries {
		order[i] = uint64(uint32(e.Seq)^1<<31)<<32 | uint64(i)
	}
	slices.Sort(order)
	unsorted := slices.Clone(entries)
	for i, at := range order {
		entries[i] = unsorted[uint32(at)]
	}
	for i := 0; i < len(entries); {
		end := i + 1
		for end < len(entries) && entries[end].Seq == entries[i].Seq {
			end++
		}
		slices.SortFunc(entries[i:end], compare)
		i = end
	}
}

// compareEntries is a total order: it returns 0 only for equal names. Two entries
// of one number are a writer and the read node that replaces it: the writer comes
// first. An unknown zxid comes first among exhausted numbers, so that an entry that
// nobody could look up blocks others. In the other order others could overtake it.
func compareEntries(a, b Entry, byCzxid bool) int {
	if byCzxid && (exhausted(a.Seq) || exhausted(b.Seq)) {
		c := cmp.Or(last(exhausted(a.Seq))-last(exhausted(b.Seq)), cmp.Compare(a.Czxid, b.Czxid))
		if c != 0 {
			return c
		}
	}
	if c := cmp.Compare(a.Seq, b.Seq); c != 0 {
		return c
	}
	return cmp.Or(last(b.exclusive())-last(a.exclusive()), strings.Compare(a.Name, b.Name))
}

// last is a sort key: 1 for what comes last, 0 for everything else.
func last(b bool) int {
	if b {
		return 1
	}
	return 0
}

// entriesAhead finds the entry with the given uuid in a sorted queue and returns it and the entries before it.
// ahead shares memory with sorted. Its capacity ends with it, so that an append to it does not overwrite self.
func entriesAhead(sorted []Entry, uuid string) (ahead []Entry, self Entry, found bool) {
	i := slices.IndexFunc(sorted, func(e Entry) bool { return e.UUID == uuid })
	if i < 0 {
		return nil, Entry{}, false
	}
	return sorted[:i:i], sorted[i], true
}

// withoutEntries returns a copy of entries that leaves out those of out.
func withoutEntries(entries, out []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return indexEntry(out, e.Name) >= 0 })
}

// among returns those of entries that are in some.
func among(entries, some []Entry) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return indexEntry(some, e.Name) < 0 })
}

func indexEntry(entries []Entry, name string) int {
	return slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
}

func sameEntries(a, b []Entry) bool {
	return slices.EqualFunc(a, b, func(x, y Entry) bool { return x.Name == y.Name })
}
