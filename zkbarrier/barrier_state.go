package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// barrierState is the data of a barrier's base node. It changes when a generation ends and
// at no other time, so whoever knows its version knows it all.
type barrierState struct {
	Parties    int   `json:"parties"`
	Tolerant   bool  `json:"tolerant,omitempty"`
	Generation int64 `json:"generation"`
	Broken     bool  `json:"broken,omitempty"`

	version int32
}

func (st barrierState) encode() []byte {
	data, err := json.Marshal(st)
	if err != nil {
		panic(err) // numbers and booleans
	}
	return data
}

// next is the state after the generation's end.
func (st barrierState) next() barrierState {
	st.Generation, st.Broken = st.Generation+1, false
	st.version++
	return st
}

// broken is the state in which the generation is broken.
func (st barrierState) broken() barrierState {
	st.Broken = true
	st.version++
	return st
}

// barrierRecord is the data of a node that tells how a generation ended.
type barrierRecord struct {
	Broken bool     `json:"broken,omitempty"`
	Passed []string `json:"passed,omitempty"` // attempts, in the order of arrival
}

// remembered is how many generations back their ends are kept.
const remembered = 32

func (b *Barrier) base() string { return b.door.Full(b.path) }

// dir has a node for every party of the generation.
func (b *Barrier) dir(generation int64) string {
	return fmt.Sprintf("%s/parties-%d", b.base(), generation)
}

// open is there until the generation ends, in one way or the other: whoever waits watches it.
func (b *Barrier) open(generation int64) string {
	return fmt.Sprintf("%s/open-%d", b.base(), generation)
}

// ended tells how the generation ended.
func (b *Barrier) ended(generation int64) string {
	return fmt.Sprintf("%s/ended-%d", b.base(), generation)
}

// state is what was last heard of the barrier. It may be old: arrivals have it checked.
func (b *Barrier) state(ctx context.Context, e *zkconn.Epoch) (barrierState, error) {
	b.mu.Lock()
	known := b.known
	b.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	return b.learn(ctx, e, false)
}

// advance makes known what became of a state.
func (b *Barrier) advance(from, to barrierState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known != nil && b.known.version == from.version {
		b.known = &to
	}
}

// learn reads the state, or writes it if nobody has. sync makes it that of the leader.
func (b *Barrier) learn(ctx context.Context, e *zkconn.Epoch, sync bool) (st barrierState, err error) {
	if sync {
		if err := record.Synced(ctx, e, b.base()); err != nil {
			return st, err
		}
	}
	for pace := record.Founding(); ; {
		data, stat, err := e.Get(ctx, b.base())
		if errors.Is(err, zk.ErrNoNode) {
			if err := b.found(ctx, e); err != nil {
				return st, err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return st, err
			}
			continue
		}
		if err != nil {
			return st, err
		}
		if !record.DecodeTerms(data, &st, "parties", "generation") || st.Parties < 1 {
			return st, fmt.Errorf("%w: the base node is not that of a barrier; use a path of its own", zksync.ErrMisuse)
		}
		if st.Parties != b.parties {
			return st, fmt.Errorf("%w: the barrier is one of %d parties, not %d; use the same number everywhere",
				zksync.ErrMisuse, st.Parties, b.parties)
		}
		if st.Tolerant != b.tolerant {
			return st, fmt.Errorf("%w: the barrier is tolerant for some and not for others; use the same everywhere",
				zksync.ErrMisuse)
		}
		st.version = stat.Version
		b.mu.Lock()
		b.known = &st
		b.mu.Unlock()
		return st, nil
	}
}

// found makes the base node and the first generation, at once.
func (b *Barrier) found(ctx context.Context, e *zkconn.Epoch) error {
	st := barrierState{Parties: b.parties, Tolerant: b.tolerant}
	err := commit(ctx, e, append([]any{
		&zk.CreateRequest{Path: b.base(), Data: st.encode(), Acl: b.door.ACL()},
	}, b.beginning(0)...))
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return record.Synced(ctx, e, b.base()) // this server has to hear of it
	case errors.Is(err, zk.ErrNoNode):
		return node.MakeDir(ctx, e, record.Parent(b.base()), b.door.ACL())
	}
	return err
}

// beginning makes the nodes of a generation. Its directory is persistent and not a
// container: only so can it come into being in the transaction that ends the one before.
func (b *Barrier) beginning(generation int64) []any {
	return []any{
		&zk.CreateRequest{Path: b.dir(generation), Acl: b.door.ACL()},
		&zk.CreateRequest{Path: b.open(generation), Acl: b.door.ACL()},
	}
}

// commit runs a transaction until its outcome is known. One that was applied, and is run again because
// the answer was lost, is refused the second time: it must change a version that it checks.
func commit(ctx context.Context, e *zkconn.Epoch, ops []any) error {
	return record.Insist(ctx, e, func() error {
		_, err := e.StartMulti(ops...).Wait(ctx, e)
		return err
	})
}
