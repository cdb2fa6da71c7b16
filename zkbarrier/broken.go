package zkbarrier

import (
	"encoding/json"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/zksync"
)

// Cause says why a barrier is broken; empty if that is not known.
type Cause string

const (
	// Died: the session of a waiting party ended, or its node was removed externally.
	Died Cause = "died"
	// GaveUp: the context of a party ended.
	GaveUp Cause = "gave up"
	// Reset: a process called Reset.
	Reset Cause = "reset"
	// Removed: nodes of the barrier were removed externally.
	Removed Cause = "removed"
	// ActionFailed: the function of WithAction failed or panicked.
	ActionFailed Cause = "action failed"
)

// BrokenError says why a barrier is broken. It is a zksync.ErrBroken.
type BrokenError struct {
	Why Cause
	// By has the party that died, gave up or ran the action, or the caller of Reset. After
	// [DoubleBarrier.Leave] it has the first 16 that had not left, the dead among them.
	By []zksync.Owner
	// Died is how many died inside a DoubleBarrier.
	Died    int
	Parties int
	// Count is how many had arrived; 0 if unknown.
	Count int
	// Arrived are the first 16 of them.
	Arrived []zksync.Owner
}

func (e *BrokenError) Error() string {
	text := "the barrier is broken"
	switch e.Why {
	case Died:
		text += ": " + e.deaths()
	case GaveUp:
		text += ": " + e.by("a party") + " gave up"
	case Reset:
		text += ": " + e.by("a process") + " reset the barrier"
	case Removed:
		text += ": somebody has removed nodes of the barrier"
	case ActionFailed:
		text += ": the action failed in " + e.by("a party")
	}
	if e.Count > 0 {
		text += "; " + e.roll("had")
	}
	if e.Why != Reset && e.Died == 0 { // a DoubleBarrier mends itself
		text += "; it stays broken until a Reset, or menagerie reset PATH"
	}
	return text
}

// roll names the parties that have, or had, arrived.
func (e *BrokenError) roll(have string) string {
	there := record.Roll{Owners: node.Owners[node.Owner](e.Arrived), More: e.Count - len(e.Arrived)}
	return there.Say(fmt.Sprintf("%d of %d %s arrived", e.Count, e.Parties, have))
}

// Unwrap returns zksync.ErrBroken.
func (e *BrokenError) Unwrap() error { return zksync.ErrBroken }

// by names the parties in By.
func (e *BrokenError) by(unknown string) string {
	if len(e.By) == 0 {
		return unknown
	}
	return record.Roll{Owners: node.Owners[node.Owner](e.By)}.String()
}

// deaths names the dead.
func (e *BrokenError) deaths() string {
	if e.Died == 0 || len(e.By) == e.Died {
		return e.by("a party") + " died"
	}
	text := fmt.Sprintf("%d of %d parties died", e.Died, e.Parties)
	if len(e.By) > 0 {
		text += fmt.Sprintf("; not left when last seen: %s", record.Roll{Owners: node.Owners[node.Owner](e.By)})
	}
	return text
}

// breach is what the record of a broken generation says of the cause.
type breach struct {
	Why     Cause   `json:"why,omitempty"`
	By      *owner  `json:"by,omitempty"`
	Count   int     `json:"count,omitempty"`
	Arrived []owner `json:"arrived,omitempty"`
}

// owner is an Owner in a record. Any program may have written the record, so it is cleaned before it can reach a terminal.
type owner zksync.Owner

func (o owner) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Host string `json:"host"`
		PID  int    `json:"pid"`
		Name string `json:"name"`
	}(o))
}

func (o *owner) UnmarshalJSON(data []byte) error {
	*o = owner(node.Decode(data).Owner)
	return nil
}

// error is the breach for the caller of a barrier of so many parties.
func (h breach) error(parties int) *BrokenError {
	e := &BrokenError{Why: h.Why, Parties: parties, Count: h.Count}
	if h.By != nil && *h.By != (owner{}) {
		e.By = []zksync.Owner{zksync.Owner(*h.By)}
	}
	e.Arrived = node.Owners[zksync.Owner](h.Arrived)
	return e
}

// present names the parties that were there, for a party that gave up; "" if they are not known.
func (h breach) present(parties int) string {
	if h.Count == 0 {
		return ""
	}
	return h.error(parties).roll("have")
}
