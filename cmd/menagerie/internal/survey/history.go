package survey

import (
	"slices"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// MarshalJSON writes whole milliseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(m).Milliseconds(), 10), nil
}

// UnmarshalJSON reads them.
func (m *Millis) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	*m = Millis(time.Duration(n) * time.Millisecond)
	return err
}

// history is what was seen of the holds of each path. A hold that was there at the first look is no measure: when it began is known
// only by the clock of its owner.
type history map[string]*past

type past struct {
	kind    string               // of a queue; "" for others
	began   map[string]time.Time // holds, by node and token; the zero time for those of the first look
	ended   []time.Duration      // the newest holds, unsorted
	next    int                  // of ended, to be overwritten
	changes int32                // of the directory of the entries
	at      time.Time
}

// kept is how many holds of a path count as usual.
const kept = 1000

// see takes in what a look at has shown of an object, and returns the grants a second since the look before; -1 at the first one.
func (h history) see(o *tree.Object, at time.Time) (grants float64) {
	p, known := h[o.Path], true
	if p == nil {
		p, known = &past{began: make(map[string]time.Time)}, false
		h[o.Path] = p
	}
	if p.kind = ""; o.Queue {
		p.kind = o.Kind
	}
	held := make(map[string]bool)
	for _, r := range o.In(zksync.Held) {
		key := r.Node + " " + r.Token
		held[key] = true
		if _, seen := p.began[key]; !seen && known {
			p.began[key] = at
		} else if !seen {
			p.began[key] = time.Time{}
		}
	}
	p.end(held, at)
	grants = -1
	if d := at.Sub(p.at).Seconds(); known && d > 0 {
		// An entry changes its directory when it comes and when it goes. A directory that was made again begins again.
		grants = max(float64(o.Changes-p.changes), 0) / 2 / d // the difference wraps around as the number does
	}
	p.changes, p.at = o.Changes, at
	return grants
}

func (p *past) add(d time.Duration) {
	if len(p.ended) < kept {
		p.ended = append(p.ended, d)
		return
	}
	p.ended[p.next] = d
	p.next = (p.next + 1) % kept
}

// end takes the holds that are not held any more for measures.
func (p *past) end(held map[string]bool, at time.Time) {
	for key, began := range p.began {
		if held[key] {
			continue
		}
		delete(p.began, key)
		if !began.IsZero() {
			p.add(at.Sub(began))
		}
	}
}

// recall makes an empty directory what it was when it had entries: between two holds it is a free lock.
func (h history) recall(o *tree.Object) {
	if o == nil || o.Kind != "empty" || h[o.Path] == nil || h[o.Path].kind == "" {
		return
	}
	*o = *free(o.Path, h[o.Path].kind, o.Changes)
}

func free(path, kind string, changes int32) *tree.Object {
	return &tree.Object{Path: path, Kind: kind, State: "free", Detail: "nobody holds or waits", Entries: []tree.Row{}, Queue: true, Changes: changes}
}

// lingers is how long a lock is shown after its directory is gone.
const lingers = time.Minute

// leave ends the holds of the paths that a look has not shown: the servers remove the directory of a lock that nobody uses. It returns
// those of them that were used until a short time ago. If there are many such paths, it forgets them.
func (h history) leave(shown map[string]*tree.Object, at time.Time) (recent []*tree.Object) {
	crowded := len(h) > 2*most
	for path, p := range h {
		if shown[path] != nil {
			continue
		}
		p.end(nil, at)
		switch {
		case crowded:
			delete(h, path)
		case p.kind != "" && at.Sub(p.at) < lingers:
			recent = append(recent, free(path, p.kind, p.changes))
		}
	}
	return recent
}

// usual is what the holds of a path were.
func (h history) usual(path string) Usual {
	p := h[path]
	if p == nil || len(p.ended) == 0 {
		return Usual{}
	}
	all := slices.Sorted(slices.Values(p.ended))
	u := Usual{Holds: len(all), Median: Millis(all[(len(all)-1)/2]), P99: Millis(all[(len(all)*99-1)/100])}
	for _, d := range all {
		for len(u.Counts) == 0 || d > time.Duration(u.Counts[len(u.Counts)-1].UpTo) {
			u.Counts = append(u.Counts, Bucket{UpTo: Millis(limits(len(u.Counts)))})
		}
		u.Counts[len(u.Counts)-1].Holds++
	}
	return u
}

// limits are 10 ms, 20, 50, 100, 200, 500, 1 s and so on.
func limits(i int) time.Duration {
	d := []time.Duration{10, 20, 50}[i%3] * time.Millisecond
	for range i / 3 {
		d *= 10
	}
	return d
}
