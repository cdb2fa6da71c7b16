package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// window is how many reads are on their way at once.
const window = 64

// link is a tree's use of one connection. Reads are sent ahead, and their answers are handled in the order of the
// requests, which is the order of the server's history. So a later answer never shows an older state.
type link struct {
	t       *tree
	e       *zkconn.Epoch
	number  int64 // of the connection
	once    bool  // there is no recursive watch: each node has watches of its own
	all     *zkconn.TreeWatch
	absence *zkconn.Watch    // of the root, if there is no recursive watch
	asked   []*answer        // the oldest first
	refused bool             // an answer had no meaning, and no later one had one
	again   <-chan time.Time // when nodes that may not be read are read again; nil if there are none

	cutting sync.Once
	cut     chan struct{} // closed when watches of the connection have ended
}

// answer is a read on its way.
type answer struct {
	job
	probe  bool // sent while the servers refused
	done   <-chan struct{}
	handle func() error // once done is closed
	drop   func()       // instead of handle
}

// watch sets the recursive watch, if the servers have such watches.
func (l *link) watch(ctx context.Context) (err error) {
	l.all, err = l.e.WatchTree(ctx, l.t.path, func(path string, what zkconn.Event) { l.hear(job{path, read}, what) })
	if zkconn.Unimplemented(err) {
		l.once, err = true, nil
	}
	return err
}

// hear is called in the goroutine that reads the connection.
func (l *link) hear(j job, what zkconn.Event) {
	if what == zkconn.Disconnected {
		l.cutting.Do(func() { close(l.cut) })
		return
	}
	l.t.jobs.add(j)
}

// room reports whether another read may be sent. Servers that refuse get one read at a time.
func (l *link) room() bool { return len(l.asked) < window && !(l.refused && len(l.asked) > 0) }

// ask sends reads, as many as may be on their way.
func (l *link) ask() {
	for l.room() {
		j, ok := l.t.jobs.take()
		if !ok {
			return
		}
		if a := l.start(j); a != nil {
			a.probe = l.refused
			l.asked = append(l.asked, a)
		}
	}
}

// start sends the read of a job; nil if it is not needed any more.
func (l *link) start(j job) *answer {
	known, _ := l.t.find(j.path)
	switch {
	case !l.t.wants(j):
		return nil
	case j.what == expect:
		w, call := l.e.StartWatchAbsence(j.path, l.hears(job{j.path, read}))
		l.keep(&l.absence, w)
		return asking(l, j, call, nil, l.expected)
	case known == nil && j.what != read:
		return nil
	case j.what == verify:
		return asking(l, j, zkconn.Start(l.e, zkconn.ReadStat(j.path)), nil, l.verified)
	case j.what == list && l.once:
		w, call := l.e.StartWatchChildren(j.path, l.hears(job{j.path, list}))
		return asking(l, j, call, w, l.listed)
	case j.what == list:
		return asking(l, j, zkconn.Start(l.e, zkconn.ListChildren(j.path)), nil, l.listed)
	case l.once:
		w, call := l.e.StartWatchData(j.path, l.hears(job{j.path, read}))
		return asking(l, j, call, w, l.looked)
	}
	return asking(l, j, zkconn.Start(l.e, zkconn.ReadData(j.path)), nil, l.looked)
}

func (l *link) hears(j job) func(zkconn.Event) {
	return func(what zkconn.Event) { l.hear(j, what) }
}

// asking makes the answer to a call. f gets the answer, and the watch that the call has set.
func asking[T any](l *link, j job, call *zkconn.Call[T], w *zkconn.Watch, f func(string, T, *zkconn.Watch, error) error) *answer {
	return &answer{
		job: j, done: call.Done(),
		handle: func() error {
			v, err := call.Wait(context.Background(), l.e) // does not block, and finds out whether the answer still counts
			if err != nil && w != nil {
				zkconn.GiveUp(l.e, w, call)
			}
			if errors.Is(err, zkconn.ErrTooLong) { // it ends the loop, whose path is another one
				err = fmt.Errorf("%s: %w", j.path, err)
			}
			return f(j.path, v, w, err)
		},
		drop: func() {
			if w != nil {
				zkconn.GiveUp(l.e, w, call)
			}
		},
	}
}

// handled handles an answer. The error node.ErrAgain means that the connection was lost.
func (l *link) handled(a *answer) error {
	l.t.mu.Lock()
	err := over(a.handle())
	l.t.mu.Unlock()
	if !again(err) {
		l.refused = l.refused && !a.probe
		return err
	}
	l.t.jobs.add(a.job)
	if l.e.Connection() != l.number {
		return node.ErrAgain
	}
	l.refused = true // an answer without a meaning
	return nil
}

// next waits for the oldest answer. It returns nil if there are new jobs instead, and room for their reads.
func (l *link) next(ctx context.Context) (*answer, error) {
	var done, come <-chan struct{}
	if len(l.asked) > 0 {
		done = l.asked[0].done
	}
	if l.room() {
		come = l.t.jobs.come
	}
	if l.again == nil && len(l.t.secret) > 0 {
		l.again = time.After(l.e.Timeout())
	}
	select {
	case <-done:
		a := l.asked[0]
		l.asked = l.asked[1:]
		return a, nil
	case <-come:
		return nil, nil
	case <-l.again:
		l.again = nil
		l.lookAgain()
		return nil, nil
	case <-l.cut:
		return nil, node.ErrAgain
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.e.Over():
		return nil, zkconn.ErrOver
	}
}

// lookAgain reads nodes again that the session may not read: random ones if there are many.
func (l *link) lookAgain() {
	left := window
	for path := range l.t.secret {
		if left--; left < 0 {
			return
		}
		l.t.jobs.add(job{path, read})
	}
}

// end leaves no watch behind. Jobs that were not answered are for the next connection.
func (l *link) end() {
	for _, a := range l.asked {
		a.drop()
		l.t.jobs.add(a.job)
	}
	if l.all != nil {
		l.all.Stop()
	}
	l.unwatch(l.absence)
	l.forget(l.t.root)
}
