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
	v := &View{Root: s.Root, At: s.at, Outage: s.outage(now), Servers: s.report, Denied: s.denied, Left: s.left, Objects: []*Object{}}
	for _, seen := range s.seen {
		o := &Object{Object: *seen, Entries: []*Entry{}, Grants: s.grants[seen.Path], Usual: s.history.usual(seen.Path)}
		for i, r := range seen.Entries {
			o.Entries = append(o.Entries, s.entry(o, i, r, now))
		}
		v.Objects = append(v.Objects, o)
	}
	v.findCycles()
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

func (s *Survey) entry(o *Object, i int, r tree.Row, now time.Time) *Entry {
	e := &Entry{Row: r}
	if since := r.Time(); !since.IsZero() {
		e.For = Millis(max(now.Sub(since), 0)) // clocks differ
	}
	if median := o.Usual.Median; r.State == zksync.Held && median > 0 {
		e.Ratio = float64(e.For) / float64(median)
	}
	if s.report != nil {
		e.Heard, e.Dead = s.report.Dead(tree.SessionID(r.Session))
	}
	if r.State == zksync.Waiting && o.Queue && i > 0 {
		ahead := o.Object.Entries[i-1]
		e.Ahead, e.Behind = ahead.Node, ahead.Who()
	}
	return e
}
