package tree

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// Object is what ls prints of one path: the State of a recipe, read from its JSON, or a plain node. Its names in JSON are part of the interface.
// Fields of a State that it does not have are left out. Of a queue (also a semaphore, with its count) ls --json prints only the entries.
type Object struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	State  string `json:"state"`  // a word for programs
	Detail string `json:"detail"` // a phrase for people
	// How many of how many: permits held, parties that have arrived, events counted.
	Count *int64 `json:"count,omitempty"`
	Total *int64 `json:"total,omitempty"`
	// The members in order: contenders of a queue, parties, members. They may be left out in the
	// list of a directory.
	Entries []Row `json:"entries"`

	Queue   bool     `json:"-"` // the entries are a queue, and ls --json prints them alone
	Changes int32    `json:"-"` // of a queue: how often an entry has come or gone, modulo 1<<32
	Rest    []string `json:"-"` // children that are no part of it: something else
}

// Plain reports whether it is no recipe.
func (o *Object) Plain() bool {
	return o.Kind == "directory" || o.Kind == "node" || o.Kind == "empty" || o.Kind == "system"
}

// OmitNone drops from the entries that their owners held nothing when they queued, which interests nobody.
func (o *Object) OmitNone() {
	if o == nil {
		return
	}
	for i := range o.Entries {
		if o.Entries[i].Under == node.UnderNone {
			o.Entries[i].Under = ""
		}
	}
}

// In returns the entries in one state.
func (o *Object) In(state zksync.Standing) (rows []Row) {
	for _, r := range o.Entries {
		if r.State == state {
			rows = append(rows, r)
		}
	}
	return rows
}

// Row is one entry of ls --json: a zksync.Contender. Its names are part of the interface.
type Row struct {
	Position int             `json:"position"`
	Kind     zksync.Kind     `json:"kind"`
	State    zksync.Standing `json:"state"`
	Owner    Owner           `json:"owner"`
	Since    string          `json:"since"`
	Session  string          `json:"session"`
	Token    string          `json:"token"`
	Node     string          `json:"node"`
	ID       string          `json:"id,omitempty"`      // of a candidate
	Permits  int64           `json:"permits,omitempty"` // of an entry of a semaphore
	Under    string          `json:"under,omitempty"`   // what its owner held when it queued
	// What the servers say against its session, if they were asked: "last heard 6 s ago: free in at most 4 s"; and whether so it is probably dead.
	Heard string `json:"heard,omitempty"`
	Dead  bool   `json:"dead,omitempty"`
}

// Time is the time of Since; zero if it is unknown.
func (r Row) Time() time.Time {
	t, _ := time.Parse(time.RFC3339, r.Since)
	return t
}

// Owner is the owner of a row.
type Owner struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// String is the owner for people: its name, then its host and pid. zksync has removed from both
// the characters that could move the cursor of a terminal.
func (o Owner) String() string {
	var parts []string
	if o.Name != "" {
		parts = append(parts, o.Name)
	}
	if o.Host != "" || o.PID != 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", o.Host, o.PID))
	}
	return Dash(strings.Join(parts, "@"))
}

// Clean replaces what a terminal does not print, or what could move its cursor or turn the direction of its text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// Dash stands for an empty text.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Who is an owner in a sentence, as in package wording: "web-3 pid 4711".
func (r Row) Who() string { return wording.Who(node.Owner(r.Owner), SessionID(r.Session)) }

// Owned is the owner in a table: "invoices@web-3:4711", or its session.
func (r Row) Owned() string {
	if r.Owner == (Owner{}) {
		return r.Who()
	}
	return r.Owner.String()
}

// HeldBy names the first holder, and says how many others there are.
func HeldBy(holders []Row, now time.Time) string {
	if len(holders) == 0 {
		return ""
	}
	h := holders[0]
	text := wording.By("held", node.Owner(h.Owner), SessionID(h.Session), h.Time(), now, len(holders)-1)
	if h.Heard != "" {
		text += ", " + h.Heard
	}
	return text
}

// SessionText is the id of a session for people; "" for none.
func SessionText(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", uint64(id))
}

// SessionID is the reverse of SessionText.
func SessionID(text string) int64 {
	id, _ := strconv.ParseUint(text, 0, 64) // "" is none
	return int64(id)
}
