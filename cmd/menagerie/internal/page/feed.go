package page

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
)

// State is what the page shows: a view, and what a viewer may do.
type State struct {
	*survey.View
	Servers *servers.Report `json:"servers,omitempty"` // without the clients, which the entries name
	Now     time.Time       `json:"now"`
	Release bool            `json:"release"` // viewers may remove entries
	Command string          `json:"command"` // removes an entry, with PATH and --node NAME added
}

// beat is what changes of a State while nothing happens.
type beat struct {
	Now    time.Time `json:"now"`
	At     time.Time `json:"at"`
	Outage string    `json:"outage,omitempty"`
}

// frame is one view, encoded for all viewers.
type frame struct {
	State
	full, beat []byte
	content    int // counts the contents: a viewer that has the same one needs only the beat
}

// feed has the newest frame. A viewer that is slow misses those between.
type feed struct {
	mu      sync.Mutex
	newest  *frame
	still   []byte // the content of the newest
	changed chan struct{}
}

func (f *feed) show(v *survey.View, o Options) {
	s := State{View: v, Now: time.Now(), Release: o.Release != nil, Command: o.Command}
	if v.Servers != nil {
		report := *v.Servers
		report.Clients = nil
		s.Servers = &report
	}
	n := &frame{State: s, full: encode(s), beat: encode(beat{s.Now, v.At, v.Outage})}
	still := encode(s.still())
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newest != nil {
		n.content = f.newest.content
	}
	if !bytes.Equal(still, f.still) {
		n.content++
	}
	f.newest, f.still = n, still
	close(f.changed)
	f.changed = make(chan struct{})
}

// get returns the newest frame, nil before the first, and a channel that is closed when there is a newer one.
func (f *feed) get() (*frame, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest, f.changed
}

// still is s without what passing time changes.
func (s State) still() State {
	v := *s.View
	objects := v.Objects
	s.View, s.Now, v.At, v.Outage, v.Objects = &v, time.Time{}, time.Time{}, "", nil
	for _, o := range objects {
		of := *o
		of.Entries = nil
		for _, e := range o.Entries {
			entry := *e
			entry.For, entry.Ratio = 0, 0
			of.Entries = append(of.Entries, &entry)
		}
		v.Objects = append(v.Objects, &of)
	}
	return s
}

// encode cannot fail: all that a State has can be encoded.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
