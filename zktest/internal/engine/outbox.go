package engine

import (
	"sync"
	"time"
)

// writeLoop sends what is queued, in order and not before its time.
func (c *conn) writeLoop() {
	s := c.srv
	for {
		s.mu.Lock()
		batch, n, wait, released := c.nextOut()
		if batch == nil && wait == 0 {
			c.abort()
		}
		done := c.aborted
		if c.closing && batch != nil {
			c.hurry() // a fault may have kept the frames back since shut
		}
		s.mu.Unlock()
		if done {
			return
		}
		if batch == nil {
			s.await(c.owake, wait, released)
			continue
		}
		c.left(n)
		_, err := c.nc.Write(batch)
		c.written()
		if err != nil {
			s.mu.Lock()
			c.abort()
			s.mu.Unlock()
			return
		}
	}
}

// nextOut returns the frames that may leave now, joined; or how long to wait, and for whom; or
// neither when the connection is to be closed.
func (c *conn) nextOut() (batch []byte, n int, wait time.Duration, released <-chan struct{}) {
	s := c.srv
	if c.tooSlow {
		return nil, 0, 0, nil
	}
	if l := s.links[c.claimed]; s.frozen || l != nil && l.blockReplies > 0 {
		return nil, 0, forever, nil
	}
	now := time.Now()
	wait, released = c.unhold(now)
	if c.out.len() == 0 {
		if c.closing { // what an event keeps back is lost with the connection
			return nil, 0, 0, nil
		}
		return nil, 0, wait, released
	}
	if at := c.out.at(0).at; at.After(now) {
		return nil, 0, at.Sub(now), released
	}
	size := 0
	for n < c.out.len() && (n == 0 || size+len(c.out.at(n).frame) <= batchSize) && !c.out.at(n).at.After(now) {
		size += len(c.out.at(n).frame)
		n++
	}
	batch = c.join(n)
	c.outBytes -= size
	if c.choked && c.outBytes <= maxUnread/2 {
		c.choked = false
		poke(c.wake) // whoever takes a request then also makes room for more
	}
	return batch, n, 0, nil
}

// unhold lets go what no event keeps back any more. It returns how long the first event that still does will do so, and who may release it.
func (c *conn) unhold(now time.Time) (wait time.Duration, released <-chan struct{}) {
	for c.behind.len() > 0 {
		h := c.behind.at(0).hold
		if !h.over(now) {
			if h.until.IsZero() {
				return forever, h.release
			}
			return h.until.Sub(now), h.release
		}
		if d := c.behind.pop(); h == nil {
			c.out.push(d)
		}
	}
	return forever, nil
}

// batchSize is how much is written at once, unless a single frame is larger.
const batchSize = 64 << 10

var batches = sync.Pool{New: func() any { b := make([]byte, 0, batchSize); return &b }}

// join takes the first n frames, which fit into a batch if there are several.
func (c *conn) join(n int) []byte {
	if n == 1 {
		return c.out.pop().frame
	}
	if c.batch == nil {
		c.batch = batches.Get().(*[]byte)
	}
	b := (*c.batch)[:0]
	for range n {
		b = append(b, c.out.pop().frame...)
	}
	return b
}

// written gives back the buffer of the last batch.
func (c *conn) written() {
	if c.batch != nil {
		batches.Put(c.batch)
		c.batch = nil
	}
}
