package wording

import (
	"encoding/json"
	"fmt"
	"time"
)

// Run is what `menagerie once` keeps of a command that has succeeded. It is for people: no decision depends on it.
type Run struct {
	Command string    `json:"command"` // its name only: arguments may be secrets
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	At      time.Time `json:"at"`
}

// Done puts the kept value of a Once into words: "done by backup.sh on db1:19 at ...", or "done for 3m" since it was written, if it
// is not that of a command. since may be zero.
func Done(kept []byte, since time.Time) string {
	var r Run
	if json.Unmarshal(kept, &r) != nil {
		r = Run{}
	}
	text := "done"
	if name := Brief(r.Command); name != "" {
		text += " by " + name
	}
	if host := Brief(r.Host); host != "" {
		text += fmt.Sprintf(" on %s:%d", host, r.PID)
	}
	if !r.At.IsZero() {
		return text + " at " + r.At.Format(time.RFC3339)
	}
	return text + ForHow(since, time.Now())
}
