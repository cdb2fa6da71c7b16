package zkbarrier

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// unspoken is how many nodes of parties have gone otherwise than by Leave. The transactions of an arrival and of a
// departure each write to the directory once. So every one of them counts in both versions, and the end of a
// session only in that of the children.
func unspoken(dir *zk.Stat) int { return int(dir.Cversion - dir.Version) }

// roundMark is the data of the mark of a round. No data is a round from which nobody is missing.
type roundMark struct {
	// Quit is how many parties had gone without Leave when the round was complete: they are none of the n.
	Quit int `json:"quit"`
	// Died is how many parties have died inside, once the round is over.
	Died int `json:"died,omitempty"`
}

func openMark(quit int) []byte {
	if quit == 0 {
		return nil
	}
	return record.Encode(roundMark{Quit: quit})
}

// mark reads the mark of a round; it is zero if the round ended without a death.
func (b *DoubleBarrier) mark(ctx context.Context, e *zkconn.Epoch, round int64) (m roundMark, err error) {
	data, _, err := e.Get(ctx, b.opened(round))
	if errors.Is(err, zk.ErrNoNode) {
		return m, nil
	}
	_ = json.Unmarshal(data, &m) // somebody made it by hand, or nobody is missing
	return m, err
}

// deaths is how many parties died in a round whose directory is empty, dir. quit is that of its mark.
func (b *DoubleBarrier) deaths(ctx context.Context, e *zkconn.Epoch, dir *zk.Stat) (quit, died int, err error) {
	if unspoken(dir) <= 0 {
		return 0, 0, nil
	}
	m, err := b.mark(ctx, e, dir.Czxid)
	return m.Quit, unspoken(dir) - m.Quit, err
}

// kept is how many marks of rounds with deaths are kept, for parties that have not heard of them yet.
const kept = 8

// forget removes the marks of earlier rounds with deaths, except the newest. What fails is left for the next one.
func (b *DoubleBarrier) forget(ctx context.Context, e *zkconn.Epoch) {
	names, _, err := e.Children(ctx, b.base())
	var rounds []int64
	for _, name := range names {
		hex, ok := strings.CutPrefix(name, "open-")
		round, malformed := strconv.ParseInt(hex, 16, 64)
		if ok && malformed == nil {
			rounds = append(rounds, round)
		}
	}
	slices.Sort(rounds)
	for _, round := range rounds[:max(len(rounds)-kept, 0)] {
		if err == nil {
			err = e.Delete(ctx, b.opened(round))
		}
	}
}

// afterwards is the error of Leave for a party whose round is over.
func (b *DoubleBarrier) afterwards(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	m, err := b.mark(ctx, e, s.round)
	if err != nil {
		return err
	}
	return b.mourn(s, m.Died)
}

// mourn is the error of Leave when so many parties have died.
func (b *DoubleBarrier) mourn(s *participant, died int) error {
	if died <= 0 {
		return nil
	}
	err := &BrokenError{Why: Died, Died: died, Parties: b.n}
	err.By = slices.SortedFunc(maps.Values(s.inside), func(a, b zksync.Owner) int { return cmp.Compare(a.String(), b.String()) })
	return err
}

// lookInside is for a party that has left and waits for the others, when it has had no event for long, or the mark was
// written to. It learns who is still inside. If the round is over it returns the error of Leave, or record.ErrGone.
func (b *DoubleBarrier) lookInside(ctx context.Context, e *zkconn.Epoch, s *participant) error {
	names, dir, err := e.Children(ctx, b.parties())
	if errors.Is(err, zk.ErrNoAuth) || err == nil && (len(names) == 0 || dir.Czxid != s.round) {
		if err = b.overIfEmpty(ctx, e, s.round); errors.Is(err, record.ErrGone) {
			err = cmp.Or(b.afterwards(ctx, e, s), record.ErrGone)
		}
		return err
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	known := map[string]zksync.Owner{}
	for _, name := range names {
		owner, there := s.inside[name]
		if !there && len(known) < record.Named {
			data, _, err := e.Get(ctx, b.parties()+"/"+name)
			if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
				return err
			}
			owner, there = zksync.Owner(node.Decode(data).Owner), err == nil
		}
		if there {
			known[name] = owner
		}
	}
	s.inside = known
	return nil
}

// present says who is in the round, for a party whose wait has ended. open is the text if the round is open.
func (b *DoubleBarrier) present(ctx context.Context, e *zkconn.Epoch, open string) (string, error) {
	_, gathers, err := e.Exists(ctx, b.gathering())
	if err != nil {
		return "", err
	}
	names, _, err := e.Children(ctx, b.parties())
	if err != nil {
		return "", err
	}
	there, err := record.Call(ctx, e, b.parties(), names)
	what := open
	if gathers {
		what = "%d of %d have entered"
	}
	return there.Say(fmt.Sprintf(what, len(names), b.n)), err
}
