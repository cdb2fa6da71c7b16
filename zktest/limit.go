package zktest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// WithVirtualLimit sets how long a test in a synctest bubble may take in virtual time; the default is 24 h.
// Then the test fails, an hour later it panics.
func WithVirtualLimit(d time.Duration) Option {
	return func(o *options) { o.virtualLimit = d }
}

// lastHour is how long a test may go on after its limit, in virtual time.
const lastHour = time.Hour

// limit ends a test whose virtual time is over.
type limit struct {
	timer *time.Timer

	mu      sync.Mutex
	stopped bool
	reached bool
}

// newLimit begins to measure. It returns nil outside of a bubble.
func newLimit(t TB, d time.Duration, situation func() string, end func()) *limit {
	if !inBubble() {
		return nil
	}
	l := &limit{}
	l.mu.Lock() // until there is a timer
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(d, func() {
		text := fmt.Sprintf("zktest: the test%s has taken %v of virtual time: it waits for what does not come, or needs more (WithVirtualLimit)\n%sgoroutines of the test:\n%s",
			nameOf(t), d, situation(), testStacks())
		if l.reach(t, text) {
			end()
		}
	})
	return l
}

// reach fails the test, and has the process end if the test does not. It reports false if the test has ended.
func (l *limit) reach(t TB, text string) bool {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.reached = true
	if t.Failed() { // the panic would come before what the test has said
		text += "\nthe test had failed before that; go test -v prints its messages at once\n"
	}
	t.Errorf("%s", text)
	l.timer = time.AfterFunc(lastHour, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.stopped {
			panic(text)
		}
	})
	return true
}

// stop is called at the end of the test. It reports whether the limit was reached before.
func (l *limit) stop() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
	return l.reached
}

// nameOf returns the name of a test, with a space before it, if it has one.
func nameOf(t TB) string {
	if n, ok := t.(interface{ Name() string }); ok {
		return " " + n.Name()
	}
	return ""
}

// testStacks returns the stacks of the goroutines of this bubble that are in a test file, or were started there. The others, of clients
// and servers, would hide them.
func testStacks() string {
	buf := make([]byte, 4<<20)
	self, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "]:")
	bubble := self[strings.LastIndex(self, ", ")+1:] + "]:"
	var b strings.Builder
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.HasSuffix(head, bubble) && strings.Contains(g, "_test.go:") && !strings.Contains(head, "[synctest.Run") {
			b.WriteString(g + "\n")
		}
	}
	return b.String()
}
