package zkonce

import (
	"encoding/json"
	"errors"
	"sync"
)

// carrier encodes results of type T as JSON. If T is the type error, the text of the error is encoded, because hardly
// any error survives JSON. The carrier that packed an error returns the error itself.
type carrier[T any] struct {
	mu  sync.Mutex
	own error // the error that this carrier packed
}

// pack encodes v.
func (c *carrier[T]) pack(v T) (json.RawMessage, error) {
	err, ok := any(&v).(*error)
	if !ok || *err == nil {
		return json.Marshal(v)
	}
	c.mu.Lock()
	c.own = *err
	c.mu.Unlock()
	return json.Marshal((*err).Error())
}

// unpack decodes a value that any process has packed.
func (c *carrier[T]) unpack(data []byte) (v T, err error) {
	failure, ok := any(&v).(*error)
	if !ok {
		return v, json.Unmarshal(data, &v)
	}
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return v, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The texts are compared because another process may have kept its result first.
	if c.own != nil && c.own.Error() == *text {
		*failure = c.own
	} else {
		*failure = errors.New(*text)
	}
	return v, nil
}
