package zksync

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Owner tells people who holds or waits: it is written into the node and shown by
// the Contenders calls. Nothing is decided by it.
type Owner struct {
	// Host is the name of the machine, empty if it is not known.
	Host string
	// PID is the process id, 0 if it is not known.
	PID int
	// Name is what WithName set, or the data that another library put into its
	// node; at most 64 characters, all printable.
	Name string
}

// Limits of what is written into a node and of what is shown from one. Node data
// is anybody's, so it is cleaned before it can reach a terminal.
const (
	maxOwnerName = 64
	maxOwnerHost = 253 // the longest name that DNS knows
	maxOwnerData = 4096
)

// encodeOwner returns the data of a node: one small JSON object.
func encodeOwner(o Owner, since time.Time) []byte { return encodeNode(o, since, extras{}) }

// extras is what some nodes say besides who their owner is.
type extras struct {
	token     Token  // of a lease that the node takes over: see Downgrade
	candidate string // who stands for election, by his own name
	data      []byte // and what he says of himself
}

func encodeNode(o Owner, since time.Time, x extras) []byte {
	var taken string
	if !x.token.IsZero() {
		taken = x.token.String()
	}
	data, err := json.Marshal(struct {
		Host  string `json:"host"`
		PID   int    `json:"pid"`
		Name  string `json:"name"`
		Since string `json:"since"`
		Token string `json:"token,omitempty"`
		ID    string `json:"id,omitempty"`
		Data  []byte `json:"data,omitempty"`
	}{
		Host:  printable(o.Host, maxOwnerHost),
		PID:   o.PID,
		Name:  printable(o.Name, maxOwnerName),
		Since: since.UTC().Format(time.RFC3339Nano),
		Token: taken,
		ID:    x.candidate,
		Data:  x.data,
	})
	if err != nil {
		return nil // strings and an int always marshal; a node without data would be fine
	}
	return data
}

// decodeOwner reads the data of any node of a queue, ours or foreign. It never
// fails: what is not there or cannot be read stays zero, and text that is not ours
// (Curator writes an address, kazoo an identifier) becomes the name.
func decodeOwner(data []byte) (Owner, time.Time) {
	if len(data) > maxOwnerData {
		return Owner{Name: printable(string(data[:maxOwnerData]), maxOwnerName)}, time.Time{}
	}
	var fields struct{ Host, PID, Name, Since json.RawMessage }
	if json.Unmarshal(data, &fields) != nil {
		return Owner{Name: printable(string(data), maxOwnerName)}, time.Time{}
	}
	// Field by field, so that one of an unexpected type does not cost the others.
	var host, name, since string
	var pid int
	readField(fields.Host, &host)
	readField(fields.PID, &pid)
	readField(fields.Name, &name)
	readField(fields.Since, &since)
	o := Owner{Host: printable(host, maxOwnerHost), PID: max(pid, 0), Name: printable(name, maxOwnerName)}
	if fields.Host == nil && fields.PID == nil && fields.Name == nil {
		o.Name = printable(string(data), maxOwnerName)
	}
	at, err := time.Parse(time.RFC3339Nano, since)
	if err != nil {
		at = time.Time{}
	}
	return o, at
}

// decodeExtras reads what decodeOwner does not. What is not there or cannot be read
// stays zero.
func decodeExtras(data []byte) (x extras) {
	var fields struct{ Token, ID, Data json.RawMessage }
	if json.Unmarshal(data, &fields) == nil {
		readField(fields.Token, &x.token)
		readField(fields.ID, &x.candidate)
		readField(fields.Data, &x.data)
	}
	return x
}

// readField sets *to if raw holds a value of its type and leaves it zero if not.
func readField[T any](raw json.RawMessage, to *T) {
	var value T
	if json.Unmarshal(raw, &value) == nil {
		*to = value
	}
}

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
