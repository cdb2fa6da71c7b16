package zkonce

import (
	"encoding/json"
	"errors"
	"sync"
)

// carrier encodes results of type T as JSON. If T is the type error, the error's text is encoded,
// because hardly any error survives JSON; the process that packed an error gets the error itself.
type carrier[T any] struct {
	mu  sync.Mutex
	own error // packed in this process
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

// unpack decodes a value of any process.
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
	// Another process may have kept its result first.
	if c.own != nil && c.own.Error() == *text {
		*failure = c.own
	} else {
		*failure = errors.New(*text)
	}
	return v, nil
}
