package proving

import (
	"iter"
	"sync"
)

// Told collects what a loop tells, in a goroutine.
type Told struct {
	mu   sync.Mutex
	all  []string
	Done chan struct{} // closed when the loop has ended
}

// Tells runs a loop until it ends. show makes a text of each value; an error is told as "error".
func Tells[T any](loop iter.Seq2[T, error], show func(T) string) *Told {
	c := &Told{Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		for v, err := range loop {
			text := ""
			if err != nil {
				text = "error"
			} else {
				text = show(v)
			}
			c.mu.Lock()
			c.all = append(c.all, text)
			c.mu.Unlock()
		}
	}()
	return c
}

// Take returns what was told since.
func (c *Told) Take(v *Env) []string {
	v.Quiet()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}
