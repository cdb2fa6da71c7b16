package survey

import (
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// view puts together what is known now.
func (s *Survey) view(now time.Time) *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &View{Root: s.Root, At: s.at, Outage: s.outage(now), Servers: s.report, Denied: s.denied, Left: s.left, Missing: s.missing, Objects: []*Object{}}
	for _, seen := range s.seen {
		o := withEntries(seen)
		o.Grants, o.Usual = s.grants[seen.Path], s.history.usual(seen.Path)
		for i, e := range o.Entries {
			s.explain(o, i, e, now)
		}
		v.Objects = append(v.Objects, o)
	}
	v.findCycles(now, func(key string) bool { return s.cycles[key] })
	return v
}

// outage says why the view may be old.
func (s *Survey) outage(now time.Time) string {
	switch {
	case s.at.IsZero():
		return "the servers have not answered yet"
	case !s.epoch.Linked():
		return "no connection to the servers"
	case now.Sub(s.epoch.Heard()) > silent:
		return "the servers do not answer"
	}
	return ""
}

func withEntries(seen *tree.Object) *Object {
	o := &Object{Object: *seen, Entries: []*Entry{}}
	for _, r := range seen.Entries {
		o.Entries = append(o.Entries, &Entry{Row: r})
	}
	return o
}

// explain adds to an entry what the other entries, earlier looks and the servers say of it.
func (s *Survey) explain(o *Object, i int, e *Entry, now time.Time) {
	if since := e.Time(); !since.IsZero() {
		e.For = Millis(max(now.Sub(since), 0)) // clocks differ
	}
	if median := o.Usual.Median; e.State == zksync.Held && median > 0 {
		e.Ratio = float64(e.For) / float64(median)
	}
	if s.report != nil {
		e.Heard, e.Dead = s.report.Dead(tree.SessionID(e.Session))
	}
	if e.State == zksync.Waiting && o.Queue && i > 0 {
		ahead := o.Entries[i-1]
		e.Ahead, e.Behind = ahead.Node, ahead.Owned()
	}
}
