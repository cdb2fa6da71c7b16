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

// Entry is one contender of a queue: an ephemeral sequential node, read from its
// name. Names of other libraries are understood as far as they queue in the same
// directory by the same rules; see ParseEntry.
type Entry struct {
	Name   string // the node's name, without its directory
	UUID   string // chosen by the client per attempt; finds the node after a lost reply
	Kind   Kind
	Weight int64 // permits asked for; 1 for the other kinds
	Seq    int32
	Czxid  int64 // 0 until somebody has asked the servers
}

// Kinds in node names. The first group stands after "_c_<uuid>" (Curator,
// go-zookeeper, this module), the second after the bare uuid of kazoo.
var (
	protectedMarks = []mark{{"-lock-", KindLock}, {"-__READ__", KindRead}, {"-__WRIT__", KindWrite}}
	kazooMarks     = []mark{{"__lock__", KindWrite}, {"__rlock__", KindRead}, {"-lock-", KindLock}}
)

type mark struct {
	text string
	kind Kind
}

const (
	permitMark  = "-permit-"
	uuidLen     = 36 // 8-4-4-4-12
	BareUUIDLen = 32
)

// ParseEntry reads the name of a child of a queue. It reports false for every
// name that is not exactly of one of these forms, and such a child is no
// contender:
//
//	_c_<uuid>-lock-<seq>          Curator, go-zookeeper, this module
//	_c_<uuid>-__READ__<seq>       Curator, this module
//	_c_<uuid>-__WRIT__<seq>       Curator, this module
//	_c_<uuid>-permit-<n>-<seq>    this module
//	<32 hex>__lock__<seq>         kazoo, which does not tell writers from plain locks
//	<32 hex>__rlock__<seq>        kazoo
//	<32 hex>-lock-<seq>           kazoo, told to use that name
//
// where <uuid> is 8-4-4-4-12 or 32 hexadecimal digits.
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

// CutUUID splits a uuid of n characters off s, or returns "" and all of s.
func CutUUID(s string, n int) (uuid, rest string) {
	if len(s) < n {
		return "", s
	}
	for i := range n {
		c := s[i]
		dash := n == uuidLen && (i == 8 || i == 13 || i == 18 || i == 23)
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return "", s
		}
	}
	return s[:n], s[n:]
}

func cutMark(s string, marks []mark) (Kind, string) {
	for _, m := range marks {
		if rest, ok := strings.CutPrefix(s, m.text); ok {
			return m.kind, rest
		}
	}
	return "", s
}

// cutPermit splits "-permit-<n>-" off s. The weight is 0 if it is not there or is
// not written as strconv writes it.
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

// formatSequence writes n as the servers do (Java's "%010d"): ten characters, a
// minus sign included. Only below -999999999 there are eleven.
func formatSequence(n int32) string { return fmt.Sprintf("%010d", n) }

// sequenceLen is the length of a sequence number in a name, but for negative ones
// below -999999999, which are one longer.
const sequenceLen = 10

// ParseSequence accepts exactly what formatSequence writes. It does not compare
// with that, because formatting every name of a long listing would cost more than
// all the rest of reading it.
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

// entryPrefix returns the name to create a sequential node with; the server
// appends the sequence number. The weight matters for permits only.
func entryPrefix(kind Kind, uuid string, weight int64) string {
	if kind == KindPermit {
		return node.Prefix(uuid) + permitMark + strconv.FormatInt(weight, 10) + "-"
	}
	for _, m := range protectedMarks {
		if m.kind == kind {
			return node.Prefix(uuid) + m.text
		}
	}
	// A kind is chosen by this module, never by a peer.
	panic("zksync: no node name for kind " + strconv.Quote(string(kind)))
}

// exclusive reports whether e asks to be alone.
func (e Entry) exclusive() bool { return e.Kind == KindLock || e.Kind == KindWrite }

// limitMargin is how far before the end of the sequence numbers a queue starts to
// be ordered by creation zxid: early enough that the change of order is tried out
// long before it matters.
const limitMargin = 1 << 16

// nearLimit reports whether sequence numbers are about to stop ordering entries,
// or already have: the servers hand out the last number again and again, and
// negative ones to creates that are in flight together.
func nearLimit(seq int32) bool { return seq < 0 || seq >= math.MaxInt32-limitMargin }

// exhausted reports whether seq says nothing about the order any more. Every
// entry with such a number was created after every entry without.
func exhausted(seq int32) bool { return seq < 0 || seq == math.MaxInt32 }

// Ordered reports whether e's number says where it stands in the queue: then an entry of the same
// number can take its place.
func (e Entry) Ordered() bool { return !exhausted(e.Seq) }

// sortEntries puts entries into the order in which the servers queued them.
// byCzxid must be true, and the czxid of every entry with an exhausted number
// known, as soon as nearLimit is true of any of them.
//
// Even then numbers that are not exhausted decide among themselves. They are
// right, they agree with what a client sees that listed a moment earlier and had no
// reason yet to look at zxids, and the zxid is wrong for one kind of node: the read
// node of a downgraded writer takes the writer's place, and number, but is created
// after writers that queue behind it.
func sortEntries(entries []Entry, byCzxid bool) {
	slices.SortFunc(entries, func(a, b Entry) int { return compareEntries(a, b, byCzxid) })
}

// compareEntries is a total order: it returns 0 only for equal names. Entries of
// one number are a writer and the read node that it left, or is about to leave, in
// its place: the writer came first. Unknown zxids come first, so that an entry that
// nobody could look up blocks rather than is overtaken.
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

// last is the rank of what comes last if it is true.
func last(b bool) int {
	if b {
		return 1
	}
	return 0
}

// entriesAhead finds the entry with the given uuid in a sorted queue and returns
// it with those before it. ahead shares memory with sorted, capped so that
// appending to it does not overwrite self.
func entriesAhead(sorted []Entry, uuid string) (ahead []Entry, self Entry, found bool) {
	i := slices.IndexFunc(sorted, func(e Entry) bool { return e.UUID == uuid })
	if i < 0 {
		return nil, Entry{}, false
	}
	return sorted[:i:i], sorted[i], true
}
