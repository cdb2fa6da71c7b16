package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Summary is what the states of all types have in common.
type Summary struct {
	Path    string      `json:"path"`
	Kind    string      `json:"kind"`    // "lock", "barrier" ...
	State   string      `json:"state"`   // for programs: "free", "held" ...
	Detail  string      `json:"detail"`  // for people
	Entries []Contender `json:"entries"` // holders, waiters, parties, in order
}

// In returns the entries in one state, such as [Held].
func (s Summary) In(state Standing) []Contender {
	return slices.DeleteFunc(slices.Clone(s.Entries), func(c Contender) bool { return c.State != state })
}

func (s Summary) String() string { return s.Path + ": " + s.Kind + ", " + s.Detail }

// MutexState is the state of a lock. Its Kind may also be "rwlock", "election" or "semaphore".
type MutexState struct{ Summary }

// State reads the state, also of other libraries' entries.
func (m *Mutex) State(ctx context.Context) (MutexState, error) {
	a := m.at()
	st := MutexState{Summary{Path: a.Path, Kind: layout.Word(layout.Mutex), State: "free", Detail: "nobody holds or waits"}}
	err := a.Run(ctx, "state", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if st.Entries, err = contenders(ctx, e, a.Session, a.Path); err != nil || len(st.Entries) > 0 {
			return err
		}
		st.Detail, err = free(ctx, e, a.Full(a.Path), st.Detail)
		return err
	})
	if err != nil {
		return MutexState{}, err
	}
	if len(st.Entries) > 0 {
		st.describe(time.Now())
	}
	return st, nil
}

// free is the detail of a lock without contenders. Its path may belong to another type.
func free(ctx context.Context, e *zkconn.Epoch, full, detail string) (string, error) {
	data, _, err := e.Get(ctx, full)
	var names []string
	if err == nil {
		names, _, err = e.Children(ctx, full)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return detail, nil
	}
	switch {
	case err != nil, slices.ContainsFunc(names, isEntry): // or a contender has come since
	case layout.IsEntered(data): // by a contender, of any kind
		err = layout.RefuseOther(layout.Mutex, nil, names)
	default:
		err = layout.RefuseAllBut(layout.Mutex, data, names)
	}
	if d := queue.DelayIn(names); d > 0 {
		detail = fmt.Sprintf("it was lost: the next one waits for the lock delay of %v", d)
	}
	return detail, err
}

func isEntry(name string) bool { _, ok := queue.ParseEntry(name); return ok }

// describe finds out which kind of queue the entries are, and puts it into words.
func (s *MutexState) describe(now time.Time) {
	some := func(f func(Contender) bool) bool { return slices.ContainsFunc(s.Entries, f) }
	switch {
	case some(func(c Contender) bool { return c.Permits > 0 }):
		s.Kind = layout.Word(layout.Semaphore)
	case some(func(c Contender) bool { return c.Kind != KindLock }):
		s.Kind = layout.Word(layout.RWMutex)
	case some(func(c Contender) bool { return c.ID != "" }): // one of another library has none
		s.Kind = layout.Word(layout.Election)
		for i, c := range s.Entries {
			if c.ID == "" {
				s.Entries[i].ID = wording.Who(node.Owner(c.Owner), c.Session)
			}
		}
	}
	holders := s.In(Held)
	if len(holders) == 0 {
		s.Detail = wording.Held("nobody", time.Time{}, now)
	} else {
		h := holders[0]
		switch {
		case s.Kind == layout.Word(layout.Election):
			s.State, s.Detail = "led", fmt.Sprintf("led by %s, %s%s", h.ID, wording.Who(h.Owner, h.Session), wording.ForHow(h.Since, now))
		case h.Kind == KindRead:
			s.State, s.Detail = "read", wording.By("held for reading", h.Owner, h.Session, h.Since, now, len(holders)-1)
		default:
			s.State, s.Detail = "held", wording.By("held", h.Owner, h.Session, h.Since, now, len(holders)-1)
		}
	}
	s.Detail += wording.More(int64(len(s.In(Waiting))), "waits", "wait")
}
