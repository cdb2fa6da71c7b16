package node

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"
)

// Owner tells people who holds or waits. It is written into the
// node and shown by the Contenders calls. Nothing is decided by it.
type Owner struct {
	// Host is the name of the machine, empty if it is not known.
	Host string
	// PID is the process id, 0 if it is not known.
	PID int
	// Name is what WithName set, or the data that another library put into its
	// node; at most 64 characters, all printable.
	Name string
}

// String is "host (pid 1, name)", with what is known; "unknown" if nothing is.
func (o Owner) String() string {
	var about []string
	if o.PID != 0 {
		about = append(about, fmt.Sprint("pid ", o.PID))
	}
	if o.Name != "" {
		about = append(about, o.Name)
	}
	if o == (Owner{}) {
		return "unknown"
	}
	text := cmp.Or(o.Host, "unknown host")
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

// AnyOwner is an Owner, or the one of package zksync.
type AnyOwner interface {
	~struct {
		Host string
		PID  int
		Name string
	}
}

// Owners converts owners between the two types.
func Owners[To, From AnyOwner](list []From) (all []To) {
	for _, o := range list {
		all = append(all, To(o))
	}
	return all
}

// Limits of what is written into a node and of what is shown from one. Anybody
// may write node data, so it is cleaned before it can reach a terminal.
const (
	maxOwnerName = 64
	maxOwnerHost = 253 // the longest name that DNS knows
	maxOwnerData = 4096
	maxReason    = 200
)

// Content is the data of a node: who owns it and, for some
// nodes, more. Nothing except the token is ever decided by it.
type Content struct {
	Owner
	Since time.Time // when the node was made, by the owner's clock; zero if that is not known
	Token Token     // of a lease that the node took over; else zero
	Under string    // of an entry of a queue: see [FormatUnder]; "" if it is not known what its owner held when it queued
	Trace string    // of an entry of a queue: a W3C traceparent, of the acquisition for which it was made; "" if there is none
	ID    string    // of a candidate in an election: its name for itself
	Data  []byte    // of a candidate: what it says of itself

	Removed bool   // of a request to a holder: its owner has removed the holder's entry
	Reason  string // why; at most 200 characters, all printable
}

// written is the form in which a Content is stored: one small JSON object.
type written struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Since string `json:"since"`
	Token string `json:"token,omitempty"`
	Under string `json:"under,omitempty"`
	Trace string `json:"trace,omitempty"`
	ID    string `json:"id,omitempty"`
	Data  []byte `json:"data,omitempty"`

	Removed bool   `json:"removed,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Encode returns the data of a node.
func (c Content) Encode() []byte {
	if c.Under == "" && c.Trace == "" && c.ID == "" && len(c.Data) == 0 && !c.Removed && c.Reason == "" && c.Token.IsZero() {
		return c.Owner.encode(c.Since)
	}
	return c.marshal()
}

// begin is what the data of all nodes of an owner begin with, up to the time.
type begin struct {
	of   Owner
	data []byte
}

// newest is that of the newest node. Nearly all nodes of a process have the same owner, and
// to marshal it took an eighth of the processor time of a lock.
var newest atomic.Pointer[begin]

func (o Owner) encode(since time.Time) []byte {
	b := newest.Load()
	if b == nil || b.of != o {
		data := Content{Owner: o}.marshal()
		b = &begin{o, data[:len(data)-len(`0001-01-01T00:00:00Z"}`)]}
		newest.Store(b)
	}
	data := append(make([]byte, 0, len(b.data)+len(time.RFC3339Nano)+2), b.data...)
	return append(since.UTC().AppendFormat(data, time.RFC3339Nano), `"}`...)
}

func (c Content) marshal() []byte {
	w := written{
		Host:  printable(c.Host, maxOwnerHost),
		PID:   c.PID,
		Name:  printable(c.Name, maxOwnerName),
		Since: c.Since.UTC().Format(time.RFC3339Nano),
		Under: c.Under,
		Trace: traceparent(c.Trace),
		ID:    c.ID,
		Data:  c.Data,

		Removed: c.Removed,
		Reason:  printable(c.Reason, maxReason),
	}
	if !c.Token.IsZero() {
		w.Token = c.Token.String()
	}
	data, err := json.Marshal(w)
	if err != nil {
		return nil // strings and an int always marshal; a node without data would be fine
	}
	return data
}

// Decode reads the data of any node of a queue, ours or of another library.
// It never fails: what is missing or cannot be read stays zero. Text that is
// not ours (Curator writes an address, kazoo an identifier) becomes the name.
func Decode(data []byte) Content {
	text := Owner{Name: printable(string(data[:min(len(data), maxOwnerData)]), maxOwnerName)}
	var fields struct{ Host, PID, Name, Since, Token, Under, Trace, ID, Data, Removed, Reason json.RawMessage }
	if json.Unmarshal(data, &fields) != nil {
		return Content{Owner: text}
	}
	// Each field is read by itself, so that one of an unexpected type does not spoil the others.
	var c Content
	readField(fields.Token, &c.Token)
	readField(fields.Under, &c.Under)
	if _, known := ParseUnder(c.Under); !known {
		c.Under = ""
	}
	readField(fields.Trace, &c.Trace)
	c.Trace = traceparent(c.Trace)
	readField(fields.ID, &c.ID)
	readField(fields.Data, &c.Data)
	if len(data) > maxOwnerData && c.ID == "" {
		c.Owner = text
		return c
	}
	var since string
	readField(fields.Host, &c.Host)
	readField(fields.PID, &c.PID)
	readField(fields.Name, &c.Name)
	readField(fields.Since, &since)
	readField(fields.Removed, &c.Removed)
	readField(fields.Reason, &c.Reason)
	c.Reason = printable(c.Reason, maxReason)
	c.Owner = Owner{Host: printable(c.Host, maxOwnerHost), PID: max(c.PID, 0), Name: printable(c.Name, maxOwnerName)}
	if fields.Host == nil && fields.PID == nil && fields.Name == nil {
		c.Owner = text
	}
	if at, err := time.Parse(time.RFC3339Nano, since); err == nil {
		c.Since = at
	}
	return c
}

// readField sets *to if raw holds a value of its type, and else leaves it alone.
func readField[T any](raw json.RawMessage, to *T) {
	var value T
	if json.Unmarshal(raw, &value) == nil {
		*to = value
	}
}

// Printable is s without the characters that could move the cursor of a terminal, at most 253 of them.
func Printable(s string) string { return printable(s, maxOwnerHost) }

// printable returns the first limit characters of s without those that are not
// text: control characters, direction marks, bytes that are not UTF-8.
func printable(s string, limit int) string {
	var b strings.Builder
	for count := 0; s != "" && count < limit; {
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		if unicode.IsPrint(r) && !(r == utf8.RuneError && size == 1) {
			b.WriteRune(r)
			count++
		}
	}
	return strings.TrimSpace(b.String())
}
