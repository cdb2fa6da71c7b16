package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// fate is what became of an attempt and its generation.
type fate int

const (
	open      fate = iota
	passed         // it was counted
	apart          // all left without it: it had come too late, or not at all
	broken         //
	forgotten      // too long ago to be known
)

// fate finds out what became of the attempt in the generation that was open in st. place is that of one that
// passed. If the generation is still open, now is its state.
func (b *Barrier) fate(ctx context.Context, e *zkconn.Epoch, st barrierState, attempt string) (f fate, place int, now barrierState, err error) {
	f, place, err = b.recorded(ctx, e, st, attempt)
	if f != forgotten || err != nil {
		return f, place, st, err
	}
	now, err = b.learn(ctx, e)
	switch {
	case err != nil:
		return open, 0, st, err
	case now.Generation < st.Generation:
		// Somebody deleted the barrier, and it was founded anew.
		return broken, 0, now, nil
	case now.Generation == st.Generation && !now.Broken:
		return open, 0, now, nil
	}
	f, place, err = b.recorded(ctx, e, st, attempt) // as the leader knows it
	return f, place, st, err
}

func (b *Barrier) recorded(ctx context.Context, e *zkconn.Epoch, st barrierState, attempt string) (f fate, place int, err error) {
	data, _, err := e.Get(ctx, b.ended(st.Generation))
	if errors.Is(err, zk.ErrNoNode) {
		return forgotten, 0, nil
	}
	if err != nil {
		return open, 0, err
	}
	var how barrierRecord
	if err := json.Unmarshal(data, &how); err != nil {
		return open, 0, fmt.Errorf("%w: %s is not the end of a generation", zksync.ErrMisuse, b.at.Local(b.ended(st.Generation)))
	}
	if how.Broken {
		b.advance(st, st.broken())
		return broken, 0, nil
	}
	b.advance(st, st.next())
	place = slices.Index(how.Passed, attempt)
	if place < 0 {
		return apart, 0, nil
	}
	return passed, place, nil
}
