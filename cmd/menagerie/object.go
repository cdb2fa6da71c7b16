package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

// object is what ls prints of one path. Its names in JSON are part of the interface.
type object struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	State  string `json:"state"`  // a word for programs
	Detail string `json:"detail"` // a phrase for people
	// How many of how many: permits held, parties that have arrived, events counted.
	Count *int64 `json:"count,omitempty"`
	Total *int64 `json:"total,omitempty"`
	// The members in order: contenders of a queue, parties, members. They may be left out in the
	// list of a directory.
	Entries []contenderRow `json:"entries"`

	queue bool     // the entries are a queue, and ls --json prints them alone
	rest  []string // children that are no part of it: something else
}

func (o *object) of(count, total int64) { o.Count, o.Total = &count, &total }

// in returns the entries in one state.
func (o *object) in(state zksync.Standing) (rows []contenderRow) {
	for _, r := range o.Entries {
		if r.State == state {
			rows = append(rows, r)
		}
	}
	return rows
}

// contenderRow is one entry of ls --json. Its names are part of the interface.
type contenderRow struct {
	Position int             `json:"position"`
	Kind     zksync.Kind     `json:"kind"`
	State    zksync.Standing `json:"state"`
	Owner    ownerRow        `json:"owner"`
	Since    string          `json:"since"`
	Session  string          `json:"session"`
	Token    string          `json:"token"`
	Node     string          `json:"node"`
	ID       string          `json:"id,omitempty"`      // of a candidate
	Permits  int64           `json:"permits,omitempty"` // of an entry of a semaphore

	since time.Time
}

type ownerRow struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// String is the owner for people: its name, then its host and pid. zksync has removed from both
// the characters that could move the cursor of a terminal.
func (o ownerRow) String() string {
	var parts []string
	if o.Name != "" {
		parts = append(parts, o.Name)
	}
	if o.Host != "" || o.PID != 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", o.Host, o.PID))
	}
	return dash(strings.Join(parts, "@"))
}

// who is the owner in a sentence: "web-3 pid 4711".
func (r contenderRow) who() string { return wording.Who(zksync.Owner(r.Owner), sessionID(r.Session)) }

// heldBy names the first holder, and says how many others there are.
func heldBy(holders []contenderRow, now time.Time) string {
	if len(holders) == 0 {
		return ""
	}
	h := holders[0]
	return wording.HeldBy(zksync.Owner(h.Owner), sessionID(h.Session), h.since, now, len(holders)-1)
}

// plural counts in words: "1 node", "2 nodes".
func plural(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y") && !strings.HasSuffix(what, "ey"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(what, "y"))
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// isLastName reports whether the data of a directory are what the last entry wrote there: its name without the number.
var isLastName = like(`_c_[0-9a-f-]{36}-[a-zA-Z0-9_-]+`)

// entryName is what the node of a contender looks like; see queue.ParseEntry.
var entryName = regexp.MustCompile(`^(?:_c_(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})` +
	`(?:-lock-|-__READ__|-__WRIT__|-permit-([1-9][0-9]*)-)|[0-9a-fA-F]{32}(?:__lock__|__rlock__|-lock-))(?:[0-9]{10}|-[0-9]{9,10})$`)

// contenders are the rows of a queue.
func (l *look) contenders(ctx context.Context, path string) ([]contenderRow, error) {
	list, err := zksync.Contenders(ctx, l.s, path)
	if err != nil {
		return nil, err
	}
	rows := make([]contenderRow, len(list)) // never nil, so that an empty queue is [] in JSON
	for i, c := range list {
		rows[i] = contenderRow{
			Position: c.Position,
			Kind:     c.Kind,
			State:    c.State,
			Owner:    ownerRow{Host: c.Owner.Host, PID: c.Owner.PID, Name: c.Owner.Name},
			Since:    timestamp(c.Since),
			Session:  sessionText(c.Session),
			Token:    tokenText(c.Token),
			Node:     c.Node,
			since:    c.Since,
		}
		if m := entryName.FindStringSubmatch(c.Node[strings.LastIndexByte(c.Node, '/')+1:]); m != nil && m[1] != "" {
			rows[i].Permits, _ = strconv.ParseInt(m[1], 10, 64) // zksync has read it, too
		}
	}
	return rows, nil
}

// ownerData is the data of our nodes about their owner. A candidate's data also has its id.
type ownerData struct {
	Host, Name, ID string
	PID            int
	Since          time.Time
}

// ownerOf reads as much of the data of a node of ours as it can. It removes the characters that could
// move the cursor of a terminal.
func ownerOf(data []byte) ownerData {
	var o ownerData
	if json.Unmarshal(data, &o) != nil {
		return ownerData{}
	}
	o.Host, o.Name, o.ID = clean(o.Host), clean(o.Name), clean(o.ID)
	return o
}

// party is the row of a node that is not in a queue.
func party(n *node, kind zksync.Kind, state zksync.Standing, position int) contenderRow {
	o := ownerOf(n.data)
	if o.Since.IsZero() {
		o.Since = time.UnixMilli(n.stat.Ctime)
	}
	return contenderRow{
		Position: position, Kind: kind, State: state,
		Owner: ownerRow{Host: o.Host, PID: o.PID, Name: o.Name},
		Since: timestamp(o.Since), Session: sessionText(n.stat.EphemeralOwner), Node: n.path, since: o.Since,
	}
}

func sessionText(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", uint64(id))
}

// sessionID is the reverse of sessionText.
func sessionID(text string) int64 {
	id, _ := strconv.ParseUint(text, 0, 64) // "" is none
	return int64(id)
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func tokenText(t zksync.Token) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}
