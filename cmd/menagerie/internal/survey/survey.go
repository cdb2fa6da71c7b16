package survey

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Survey looks at everything below a path.
type Survey struct {
	Session *zksync.Session
	Root    string
	// Servers looks at the servers; nil for none.
	Servers func(context.Context) *servers.Report

	mu      sync.Mutex
	seen    []*tree.Object
	cycles  map[string]bool // the deadlocks, by their keys
	denied  []string
	left    int
	missing bool
	at      time.Time       // the newest instant at which that was so
	looking bool            // a look is under way, because something has changed
	epoch   *zkconn.Epoch   // of the newest look
	report  *servers.Report // the newest
	history history
	grants  map[string]float64
}

const (
	// most is how many objects a view shows.
	most = 2000
	// pause is the shortest time between two looks of Live.
	pause = 250 * time.Millisecond
	// beat is the longest time between two views of Live, and between two questions whether the servers answer.
	beat = time.Second
	// round is the time between two looks at the servers.
	round = 5 * time.Second
	// silent is how long the servers may be silent before a view says so.
	silent = 2500 * time.Millisecond
)

// Once reads one view.
func (s *Survey) Once(ctx context.Context) (*View, error) {
	err := tree.Follow(ctx, s.Session, 0, false, s.look)
	if err != nil {
		return nil, err
	}
	if s.Servers != nil {
		s.report = s.Servers(ctx) // after the entries were read: see servers.Report.Dead
	}
	return s.view(time.Now()), nil
}

// Heard is when a server has last answered; the zero time if none has.
func (s *Survey) Heard() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch == nil {
		return time.Time{}
	}
	return s.epoch.Heard()
}

// Live calls show with a view at each change, and every second. When the servers do not answer, the view says so. It returns
// when ctx ends, or when the session is closed.
func (s *Survey) Live(ctx context.Context, show func(*View)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	all.Go(func() {
		cancel(tree.Follow(ctx, s.Session, pause, true, func(ctx context.Context, l *tree.Look) error {
			err := s.look(ctx, l)
			tell()
			return err
		}))
	})
	all.Go(func() { s.listen(ctx) })
	if s.Servers != nil {
		all.Go(func() { s.inspect(ctx, tell) })
	}
	for {
		select {
		case <-changed:
		case <-time.After(beat):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		show(s.view(time.Now()))
	}
}

// listen asks the servers every second, so that the age of the view is known.
func (s *Survey) listen(ctx context.Context) {
	for {
		select {
		case <-time.After(beat):
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		e := s.epoch
		s.mu.Unlock()
		if e == nil {
			continue
		}
		begun := time.Now()
		bounded, cancel := context.WithTimeout(ctx, silent)
		_, _, err := e.Exists(bounded, "/")
		cancel()
		s.mu.Lock()
		// The servers report a change before they answer what was asked after it. So the view was true then, unless the look
		// that such a report begins is under way, or due after the pause.
		if err == nil && e == s.epoch && !s.looking {
			s.at = begun
		}
		s.mu.Unlock()
	}
}

// inspect looks at the servers again and again.
func (s *Survey) inspect(ctx context.Context, tell func()) {
	for {
		r := s.Servers(ctx)
		s.mu.Lock()
		s.report = r
		s.mu.Unlock()
		tell()
		select {
		case <-time.After(round):
		case <-ctx.Done():
			return
		}
	}
}

// look reads everything once.
func (s *Survey) look(ctx context.Context, l *tree.Look) error {
	s.mu.Lock()
	s.epoch, s.looking = l.Epoch, true
	s.mu.Unlock()
	began := time.Now()
	seen, denied, left, err := s.read(ctx, l)
	if err != nil {
		return err
	}
	cycles := cyclesAmong(seen)
	if len(cycles) > 0 {
		if seen, denied, left, err = s.read(ctx, l); err != nil {
			return err
		}
		again := cyclesAmong(seen)
		maps.DeleteFunc(cycles, func(key string, _ bool) bool { return !again[key] })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.cycles, s.denied, s.left, s.at, s.looking = seen, cycles, denied, left, began, false
	if s.history == nil {
		s.history = make(history)
	}
	s.grants = make(map[string]float64)
	shown := make(map[string]*tree.Object)
	for _, o := range seen {
		shown[o.Path] = o
		s.grants[o.Path] = s.history.see(o, began)
	}
	for _, o := range s.history.leave(shown, began) {
		s.seen, s.grants[o.Path] = append(s.seen, o), -1
	}
	slices.SortFunc(s.seen, byPath)
	return nil
}

// read reads everything below the root.
func (s *Survey) read(ctx context.Context, l *tree.Look) (seen []*tree.Object, denied []string, left int, err error) {
	v, err := l.View(ctx, s.Root, true, false)
	if err != nil {
		return nil, nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing = v.Target == nil
	for _, o := range append(v.Below, v.Target) {
		s.history.recall(o)
		switch {
		case o == nil: // the path does not exist
		case o.State == "denied":
			denied = append(denied, o.Path)
		case o.Plain():
		case len(seen) == most:
			left++
		default:
			seen = append(seen, o)
		}
	}
	slices.SortFunc(seen, byPath)
	return seen, denied, left, nil
}

func byPath(a, b *tree.Object) int { return strings.Compare(a.Path, b.Path) }
