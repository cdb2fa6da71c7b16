package interop

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
)

// witness is a place that contenders in several processes enter while they hold a lock. It sees two that are inside at once.
// A contender is a letter: capital letters must be alone, small ones may share. It enters by a connection, so the death of
// its process takes it out.
type witness struct {
	t    *testing.T
	door net.Listener

	mu     sync.Mutex
	change *sync.Cond
	inside map[rune]int
	visits map[rune]int
	kept   rune // stays inside until its process dies
}

func newWitness(t *testing.T) *witness {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &witness{t: t, door: door, inside: map[rune]int{}, visits: map[rune]int{}}
	w.change = sync.NewCond(&w.mu)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = door.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := door.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.receive(c) })
		}
	})
	return w
}

func (w *witness) addr() string { return w.door.Addr().String() }

// receive lets one contender in, and out when it says so or has died.
func (w *witness) receive(c net.Conn) {
	defer c.Close()
	b := make([]byte, 1)
	if _, err := c.Read(b); err != nil {
		return
	}
	who := rune(b[0])
	w.enter(who)
	defer w.leave(who)
	if w.stays(who) {
		_, _ = c.Read(b) // nothing comes but its end
		return
	}
	if _, err := c.Write([]byte{'x'}); err == nil {
		_, _ = c.Read(b)
	}
}

func (w *witness) enter(who rune) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, n := range w.inside {
		if n > 0 && (unicode.IsUpper(who) || unicode.IsUpper(other)) {
			w.t.Errorf("%c came in while %c was inside", who, other)
		}
	}
	w.inside[who]++
	w.visits[who]++
	w.change.Broadcast()
}

func (w *witness) leave(who rune) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside[who]--
	w.change.Broadcast()
}

func (w *witness) stays(who rune) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return who == w.kept
}

// keep keeps a contender's next visit inside, and waits for it.
func (w *witness) keep(who rune) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = who
	before := w.visits[who]
	w.await(fmt.Sprintf("%c comes in", who), func() bool { return w.visits[who] > before && w.inside[who] > 0 })
}

// isOut waits until a contender is outside.
func (w *witness) isOut(who rune) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = 0
	w.await(fmt.Sprintf("%c is out", who), func() bool { return w.inside[who] == 0 })
}

// goesOn waits until each of the contenders has come in so many times more.
func (w *witness) goesOn(visits int, all string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, who := range all {
		want := w.visits[who] + visits
		w.await(fmt.Sprintf("%c comes in %d times", who, visits), func() bool { return w.visits[who] >= want })
	}
}

// await is called with mu held.
func (w *witness) await(what string, holds func() bool) {
	late := time.AfterFunc(patience, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		panic(fmt.Sprintf("%s: never; inside %v, visits %v", what, w.inside, w.visits))
	})
	defer late.Stop()
	for !holds() {
		w.change.Wait()
	}
}

// visit enters at a witness, and comes out when that says so, or when the lock is lost.
func visit(ctx context.Context, addr string, who rune) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := c.Write([]byte{byte(who)}); err != nil {
		return err
	}
	b := make([]byte, 1)
	if _, err := c.Read(b); err != nil {
		return err
	}
	if _, err := c.Write([]byte{'x'}); err != nil {
		return err
	}
	_, _ = c.Read(b) // until it has been counted out
	return nil
}
