package zkflight

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/zksync"
)

// RemoteError is the error of a function that ran in another process.
type RemoteError struct {
	Owner    zksync.Owner // where it ran
	Token    zksync.Token // of its lease
	Text     string
	Panicked bool // or called runtime.Goexit
}

func (e *RemoteError) Error() string {
	verb := "failed"
	if e.Panicked {
		verb = "panicked"
	}
	where := fmt.Sprintf("%s/%d", e.Owner.Host, e.Owner.PID)
	if e.Owner.Name != "" {
		where = e.Owner.Name + " on " + where
	}
	return fmt.Sprintf("zkflight: %s in %s: %s", verb, where, strings.TrimPrefix(e.Text, "zkflight: "))
}

// result is a result, as the data of its key's node.
type result struct {
	By    json.RawMessage `json:"by,omitempty"` // the owner, encoded as in the node of a contender
	Token string          `json:"token"`
	Value json.RawMessage `json:"value,omitempty"`
	Error *string         `json:"error,omitempty"`
	Panic bool            `json:"panic,omitempty"`
	// Misuse means that the error is not the function's: its result could not be encoded.
	Misuse bool `json:"misuse,omitempty"`
}

// The greatest sizes of a value in JSON, and of the text of an error. The servers accept 1 MB in one request, and the paths
// need room.
const maxValue, maxErrorText = 800 << 10, 16 << 10

// encode returns the outcome as data of the key's node. If the value cannot be
// encoded, err says why, and so does the data.
func (c *call[T]) encode(l *lease.Lease, o outcome[T]) (data []byte, err error) {
	r := result{By: c.f.at.Owner(), Token: l.Token().String()}
	switch {
	case o.panicked != nil:
		r.fail(fmt.Sprint(o.panicked.value))
		r.Panic = true
	case o.exited:
		r.fail(errGoexit.Error())
		r.Panic = true
	case o.err != nil:
		r.fail(o.err.Error())
	default:
		if r.Value, err = encodeValue(o.val); err != nil {
			r.Value, r.Misuse = nil, true
			r.fail(strings.TrimSuffix(err.Error(), ": misuse"))
		}
	}
	return record.Encode(r), err
}

// encodeValue encodes a value that is small enough to be sent.
func encodeValue(v any) (json.RawMessage, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, errs.Misuse("the result cannot be given to others: %w", err)
	}
	if len(data) > maxValue {
		return nil, errs.Misuse("a result of %d bytes of JSON, at most %d can be given to others", len(data), maxValue)
	}
	return data, nil
}

// fail makes r an error with this text, which it cuts if it is too long.
func (r *result) fail(text string) {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	r.Error = &text
}

// receive reads a result of another process, for the first callers of the call.
func (c *call[T]) receive(data []byte, callers int) (outcome[T], error) {
	o := outcome[T]{shared: true, upTo: callers}
	r, err := c.decode(data)
	if err != nil {
		return o, err
	}
	switch {
	case r.Misuse:
		return o, errs.Misuse("in another process: %s", *r.Error)
	case r.Error != nil:
		e := &RemoteError{Text: *r.Error, Panicked: r.Panic}
		_ = json.Unmarshal(r.By, &e.Owner)         // for people only
		_ = e.Token.UnmarshalText([]byte(r.Token)) // likewise
		return o, e
	}
	if err := json.Unmarshal(r.Value, &o.val); err != nil {
		return o, errs.Misuse("the result that another process has sent is no %T: %w", o.val, err)
	}
	return o, nil
}

// decode reads the data of the key's node, and returns an error if it is not a result.
func (c *call[T]) decode(data []byte) (r result, err error) {
	if err := json.Unmarshal(data, &r); err != nil || r.Error == nil && (r.Value == nil || r.Misuse) {
		return r, errs.Misuse("the data of node %s is not a result of this package", c.f.node(c.key))
	}
	return r, nil
}
