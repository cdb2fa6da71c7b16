// Package codec turns the values of users into the data of nodes, and back.
package codec

import (
	"encoding/json"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Codec is documented in package zksync.
type Codec interface {
	Marshal(v any) ([]byte, error)
	// Unmarshal is given a pointer to the value.
	Unmarshal(data []byte, v any) error
}

// JSON is the default.
var JSON Codec = jsonCodec{}

// Raw is documented in package zksync.
var Raw Codec = rawCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("a value of type %T; zksync.Raw takes []byte and string", v)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = append([]byte{}, data...) // the data may be shared with other readers
		return nil
	case *string:
		*v = string(data)
		return nil
	}
	return fmt.Errorf("a value of type %T; zksync.Raw gives []byte and string", v)
}

// Limit is the most bytes that the servers accept in one request: jute.maxbuffer, if nobody has changed it.
const Limit = 1<<20 - 1

// Encode is c.Marshal for a request that has other bytes, too: paths, access control lists, other operations. An
// error of the codec, and a value for which the request has no room, are misuse: another attempt would not help.
func Encode(c Codec, v any, others int) ([]byte, error) {
	data, err := c.Marshal(v)
	if err != nil {
		return nil, errs.Misuse("the value cannot be encoded: %w", err)
	}
	if len(data)+others > Limit {
		return nil, errs.Misuse("the value takes %d bytes, and the servers accept %d in a request, of which %d are needed otherwise", len(data), Limit, others)
	}
	return data, nil
}

// Decode is c.Unmarshal into a new value. The error says which node cannot be decoded.
func Decode[T any](c Codec, data []byte, node string) (v T, err error) {
	if err = c.Unmarshal(data, &v); err != nil {
		var zero T // of a value that is decoded in part, nothing is right
		return zero, fmt.Errorf("the data of the node %s cannot be decoded: %w", errs.ShowPath(node), err)
	}
	return v, nil
}
