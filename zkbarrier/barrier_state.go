package zkbarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// barrierState is the data of a barrier's base node. It changes only when a generation ends, and when a Reset begins
// the next one after a broken one. So a process that knows the version of the data knows the whole state.
type barrierState struct {
	Parties    int   `json:"parties"`
	Tolerant   bool  `json:"tolerant,omitempty"`
	Generation int64 `json:"generation"`
	Broken     bool  `json:"broken,omitempty"`

	version int32 // of the base node's data
}

func (st barrierState) encode() []byte { return record.Encode(st) }

// next is the state after all parties have left, or after a Reset: the next generation is open.
func (st barrierState) next() barrierState {
	st.Generation, st.Broken = st.Generation+1, false
	st.version = zkconn.NextVersion(st.version)
	return st
}

// broken is the state in which the generation is broken.
func (st barrierState) broken() barrierState {
	st.Broken = true
	st.version = zkconn.NextVersion(st.version)
	return st
}

// barrierRecord is the data of the node that tells how a generation ended.
type barrierRecord struct {
	Broken bool     `json:"broken,omitempty"`
	Passed []string `json:"passed,omitempty"` // the attempts of the parties that it counted, in the order of arrival
	breach          // of a broken generation
}

// remembered is the number of latest generations whose records are kept.
const remembered = 32

func (b *Barrier) base() string { return b.at.Full(b.path) }

// dir is the directory of a generation. It has a node for every party that waits.
func (b *Barrier) dir(generation int64) string {
	return fmt.Sprintf("%s/parties-%d", b.base(), generation)
}

// turn is that of a new call. It is for parties that came too late several times: whoever has it arrives, and no other does.
func (b *Barrier) turn() *gate.Turn {
	return &gate.Turn{Node: b.base() + "/turn", Line: b.line}
}

// open is a node that exists until the generation ends, in whichever way. Everybody who waits watches it.
func (b *Barrier) open(generation int64) string {
	return fmt.Sprintf("%s/open-%d", b.base(), generation)
}

// ended is the node that tells how the generation ended: a barrierRecord.
func (b *Barrier) ended(generation int64) string {
	return fmt.Sprintf("%s/ended-%d", b.base(), generation)
}

// state is the newest state that this object knows. It may be old, so the transaction of an arrival checks it.
func (b *Barrier) state(ctx context.Context, e *zkconn.Epoch) (barrierState, error) {
	return at(b.terms.Known(ctx, e))
}

// learn reads the state as the leader knows it. If nobody has used the barrier yet, it creates the barrier.
func (b *Barrier) learn(ctx context.Context, e *zkconn.Epoch) (barrierState, error) {
	return at(b.terms.Latest(ctx, e))
}

// at is the state with the version of the base node's data.
func at(v record.Version[barrierState], err error) (barrierState, error) {
	v.T.version = v.Number
	return v.T, err
}

// advance records in this object that the state has changed.
func (b *Barrier) advance(from, to barrierState) {
	b.terms.Became(from.version, record.Version[barrierState]{T: to, Number: to.version})
}

// check refuses a barrier with other parameters.
func (b *Barrier) check(st barrierState) error {
	switch {
	case st.Parties != b.parties:
		return fmt.Errorf("%w: the number of parties of the barrier is %d, not %d; use the same number everywhere",
			zksync.ErrMisuse, st.Parties, b.parties)
	case st.Tolerant != b.tolerant:
		return fmt.Errorf("%w: the barrier is tolerant for some and not for others; use the same everywhere",
			zksync.ErrMisuse)
	}
	return nil
}

// beginning makes the nodes of a generation. Its directory is a persistent node, not a container, because only a
// persistent node can be made in the transaction that ends the generation before.
func (b *Barrier) beginning(generation int64) []any {
	return []any{
		&zk.CreateRequest{Path: b.dir(generation), Acl: b.at.ACL()},
		&zk.CreateRequest{Path: b.open(generation), Acl: b.at.ACL()},
	}
}

// outcome is what became of an attempt in its generation.
type outcome int

const (
	open    outcome = iota // the generation has not ended
	passed                 // all have left, and the attempt was counted
	leftOut                // all have left without the attempt: it came too late, or not at all
	broken                 // the generation was broken
	unknown                // the generation ended so long ago that its record is gone
)

// fate is the outcome, with what is known of it.
type fate struct {
	outcome
	place int    // of an attempt that passed: in the order of arrival
	why   breach // of a broken generation
}

// outcome finds out what became of the attempt in the generation that was open in st. If the generation is still open, now
// is its present state.
func (b *Barrier) outcome(ctx context.Context, e *zkconn.Epoch, st barrierState, attempt string) (f fate, now barrierState, err error) {
	f, err = b.recorded(ctx, e, st, attempt)
	if f.outcome != unknown || err != nil {
		return f, st, err
	}
	now, err = b.learn(ctx, e)
	switch {
	case err != nil:
		return fate{}, st, err
	case now.Generation < st.Generation:
		// Generations only count up. So somebody deleted the barrier, and another process created it anew.
		return fate{outcome: broken, why: breach{Why: Removed}}, now, nil
	case now.Generation == st.Generation && !now.Broken:
		return fate{}, now, nil
	}
	// The generation has ended. The transaction that ended it wrote the record, and this server has just caught up
	// with the leader. So if there is still no record, it was removed because it was old.
	f, err = b.recorded(ctx, e, st, attempt)
	return f, st, err
}

// recorded is outcome by the record of the generation's end, as far as this
// server knows; unknown if there is no record.
func (b *Barrier) recorded(ctx context.Context, e *zkconn.Epoch, st barrierState, attempt string) (f fate, err error) {
	data, _, err := e.Get(ctx, b.ended(st.Generation))
	if errors.Is(err, zk.ErrNoNode) {
		return fate{outcome: unknown}, nil
	}
	if err != nil {
		return fate{}, err
	}
	var how barrierRecord
	if err := json.Unmarshal(data, &how); err != nil {
		return fate{}, fmt.Errorf("%w: %s is not the end of a generation", zksync.ErrMisuse, b.at.Local(b.ended(st.Generation)))
	}
	if how.Broken {
		b.advance(st, st.broken())
		return fate{outcome: broken, why: how.breach}, nil
	}
	b.advance(st, st.next())
	place := slices.Index(how.Passed, attempt)
	if place < 0 {
		return fate{outcome: leftOut}, nil
	}
	return fate{outcome: passed, place: place}, nil
}

// fit returns an error if the servers would not accept the transaction in which all parties leave. That transaction
// has the paths of all parties and of eight other nodes, and less than 160 bytes more for each.
func (b *Barrier) fit() error {
	size := (b.parties+8)*(len(b.base())+160) + 8*record.ACLSize(b.at.ACL())
	if size > record.MaxTransaction {
		return fmt.Errorf("%w: all %d parties leave in one request, of %d bytes with this path and chroot (%d bytes), "+
			"and the servers accept %d: use a shorter path or fewer parties", zksync.ErrMisuse, b.parties, size, len(b.base()), record.MaxTransaction)
	}
	return nil
}
