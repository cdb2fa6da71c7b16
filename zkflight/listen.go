package zkflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// ear hears of a result while its owner queues. Without it, each would have to wait until
// all ahead have left, also those that have died, for a result that has been there for long.
type ear struct {
	enough chan struct{}               // closed when the owner waits no longer
	told   atomic.Pointer[atomic.Bool] // by the watch of the moment; nil without one
	done   chan struct{}               // closed when the rest is valid

	data       []byte // of a result
	since      int64  // zxid of what stood in the place when the wait began; 0 for not known
	aboard     int    // so many had boarded before anything later can have been written
	moved      bool   // the key has been forgotten since,
	generation int64  // and is in this generation
}

// listenAfter is how long a contender queues before it listens. Mostly it is granted at
// once, and then it need not.
const listenAfter = 10 * time.Millisecond

// listen begins to listen, until ctx ends. Whatever is heard ends the wait.
func (p *passenger[T]) listen(ctx context.Context, stop context.CancelCauseFunc) *ear {
	e := &ear{enough: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(e.done)
		t := time.NewTimer(listenAfter)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.c.joined: // he was in time only if it is known soon what he was in time for
		case <-ctx.Done():
			return
		}
		h := hearing[T]{p: p, e: e}
		// Who cannot listen waits for his turn.
		if p.f.door.In(ctx, h.in) == nil {
			stop(errHeard)
		}
	}()
	return e
}

var (
	errHeard  = errors.New("zkflight: heard")  // ends a wait that is over
	errEnough = errors.New("zkflight: enough") // ends listening
)

// announced reports whether the place is known to have changed: what is there is worth waiting for.
func (e *ear) announced() bool {
	told := e.told.Load()
	return told != nil && told.Load()
}

func (e *ear) satisfied() bool {
	select {
	case <-e.enough:
		return true
	default:
		return false
	}
}

// hearing is what an ear knows.
type hearing[T any] struct {
	p     *passenger[T]
	e     *ear
	split bool // the key has been forgotten since the wait began
}

// generation is that of the key, as the leader of the servers knows it.
func (h *hearing[T]) generation(ctx context.Context, e *zkconn.Epoch) (int64, error) {
	if err := e.Sync(ctx, h.p.f.door.Full(h.p.dir)); err != nil {
		return 0, err
	}
	g, _, err := h.p.f.generationOf(ctx, e, h.p.dir)
	return g, err
}

// in listens in one ZooKeeper session.
func (h *hearing[T]) in(ctx context.Context, e *zkconn.Epoch) error {
	for pause := listenAfter; ; pause = min(2*pause, time.Second) {
		if h.e.satisfied() {
			return errEnough
		}
		heard, err := h.hear(ctx, e)
		if heard || err != nil && !again(err) {
			return err
		}
		if h.e.satisfied() {
			return errEnough
		}
		if err := node.Sleep(ctx, e, pause); err != nil {
			return err
		}
	}
}

// again reports whether a read failed for a reason that passes.
func again(err error) bool {
	return errors.Is(err, zk.ErrNoNode) || zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent)
}

// hear listens until something is heard or the connection is lost.
func (h *hearing[T]) hear(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	if err := e.Await(ctx); err != nil {
		return false, err
	}
	place := h.p.f.door.Full(h.p.place())
	aboard := h.e.aboard
	if h.e.since == 0 {
		// What had been written anywhere before the call began must not pass for news.
		aboard = h.p.f.seats(h.p.c)
		g, err := h.generation(ctx, e)
		if err != nil {
			return false, err
		}
		if g != h.p.generation {
			h.e.moved, h.e.generation = true, g
			return true, nil
		}
	}
	// What this watch has told, or tells late, says nothing of the next one.
	told := &atomic.Bool{}
	h.e.told.Store(told)
	defer h.e.told.Store(nil) // before enough is looked at: see travel
	news := make(chan zkconn.News, 1)
	w, err := e.Watch(ctx, place, func(n zkconn.News) {
		told.Store(n == zkconn.Changed) // before the wire tells of a grant
		news <- n
	})
	if err != nil {
		return false, err
	}
	defer w.Stop()
	if heard, err := h.read(ctx, e, place); heard || err != nil {
		return heard, err
	}
	h.e.aboard = aboard // nothing had been written when they came
	return h.stay(ctx, e, place, news)
}

// stay waits for the watch. Whoever joins meanwhile is admitted, at once or, so that a crowd
// does not cost more than a few, with all that come in the next moment.
func (h *hearing[T]) stay(ctx context.Context, e *zkconn.Epoch, place string, news <-chan zkconn.News) (bool, error) {
	joined, rest := h.p.c.joined, (<-chan time.Time)(nil)
	for {
		if h.split {
			joined, rest = nil, nil // nobody joins any more
		}
		select {
		case n := <-news:
			if n == zkconn.Changed {
				return h.read(ctx, e, place)
			}
			return false, nil
		case <-rest:
			joined = h.p.c.joined
		case <-joined:
			if heard, err := h.admit(ctx, e, place); heard || err != nil {
				return heard, err
			}
			joined, rest = nil, time.After(listenAfter)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-e.Over():
			return false, zkconn.ErrOver
		}
	}
}

// admit finds out for all who have joined whether they were in time: no result has been
// written yet, and the key not been forgotten.
func (h *hearing[T]) admit(ctx context.Context, e *zkconn.Epoch, place string) (bool, error) {
	aboard := h.p.f.seats(h.p.c)
	g, err := h.generation(ctx, e)
	if err != nil {
		return false, err
	}
	if g != h.p.generation {
		h.split = true
		h.p.f.divide(h.p.c, h.p.key, h.e.aboard)
		return false, nil
	}
	heard, err := h.read(ctx, e, place)
	if !heard && err == nil {
		h.e.aboard = aboard
	}
	return heard, err
}

// read takes a result if it was written since the wait began.
func (h *hearing[T]) read(ctx context.Context, e *zkconn.Epoch, place string) (bool, error) {
	data, st, err := e.Get(ctx, place)
	if err != nil {
		return false, err
	}
	if h.e.since == 0 {
		h.e.since = st.Mzxid
	}
	if st.Mzxid > h.e.since && len(data) > 0 {
		h.e.data = data
	}
	return h.e.data != nil, nil
}

// sight is what whoever is granted must know.
type sight struct {
	generation int64  // of the key
	version    int32  // of its directory, which every Forget raises
	data       []byte // of the result that was written since he queued, nil for none
	mzxid      int64  // of that
	written    int32  // the version of the node of results
	stale      bool   // there is an older result
}

// look reads that for the contender with this token. The one who wrote a result has left
// the queue, and the servers tell of that in order.
func (p *passenger[T]) look(ctx context.Context, t zksync.Token) (s sight, err error) {
	err = p.f.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		for pause := listenAfter; ; pause = min(2*pause, time.Second) {
			if s, err = p.lookIn(ctx, e, t); err == nil || !again(err) {
				return err
			}
			if err := node.Sleep(ctx, e, pause); err != nil {
				return err
			}
		}
	})
	return s, err
}

func (p *passenger[T]) lookIn(ctx context.Context, e *zkconn.Epoch, t zksync.Token) (s sight, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		s.generation, s.version, err = p.f.generationOf(ctx, e, p.dir)
		return err
	})
	g.Go(func() error {
		data, st, err := e.Get(ctx, p.f.door.Full(p.place()))
		if err == nil {
			s.written = st.Version
		}
		switch {
		case err != nil || len(data) == 0:
			return err
		case st.Mzxid > t.Zxid:
			s.data, s.mzxid = data, st.Mzxid
		default:
			s.stale = true
		}
		return nil
	})
	err = g.Wait()
	return s, err
}

// keyState is the data of a key's directory.
type keyState struct {
	Generation int64 `json:"generation"`
}

// generationOf reads the generation of the key whose directory is dir.
func (f *Flight[T]) generationOf(ctx context.Context, e *zkconn.Epoch, dir string) (generation int64, version int32, err error) {
	data, st, err := e.Get(ctx, f.door.Full(dir))
	if err != nil {
		return 0, 0, err
	}
	generation, err = parseGeneration(dir, data)
	return generation, st.Version, err
}

// parseGeneration reads the data of a key's directory; the first generation needs none.
func parseGeneration(dir string, data []byte) (int64, error) {
	var s keyState
	if len(data) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(data, &s); err != nil || s.Generation < 0 {
		return 0, fmt.Errorf("%w: the data of node %s is not of this package", zksync.ErrMisuse, dir)
	}
	return s.Generation, nil
}
