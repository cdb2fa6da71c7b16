package zkonce

import (
	"encoding/json"
	"errors"
	"sync"
)

// carrier takes results of type T through JSON. If T is the type error they travel as their
// text, since hardly any error survives JSON; where it was returned an error stays itself.
type carrier[T any] struct {
	mu  sync.Mutex
	own error // what was packed here
}

// pack is v as it is kept.
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

// unpack is the value that was kept, by whomever.
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
	// Another process may have been quicker to have its result kept.
	if c.own != nil && c.own.Error() == *text {
		*failure = c.own
	} else {
		*failure = errors.New(*text)
	}
	return v, nil
}
