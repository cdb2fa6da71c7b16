package control

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/zktest"
)

func hex(n int64) string { return fmt.Sprintf("0x%x", n) }

// sessionRow is a session in the answers.
type sessionRow struct {
	ID         string    `json:"id"`
	Timeout    string    `json:"timeout"`
	Connected  bool      `json:"connected"`
	Heard      time.Time `json:"heard"`
	Expires    time.Time `json:"expires"`
	Watches    int       `json:"watches"`
	Ephemerals []string  `json:"ephemerals"`
}

func (c *Control) sessionRows() []sessionRow {
	rows := []sessionRow{}
	for _, s := range c.srv.Sessions() {
		rows = append(rows, sessionRow{
			ID: hex(s.ID), Timeout: s.Timeout.String(), Connected: s.Connected, Heard: s.LastHeard, Expires: s.Expires,
			Watches: s.Watches, Ephemerals: append([]string{}, s.Ephemerals...),
		})
	}
	return rows
}

func (c *Control) sessions(fields) (any, error) { return c.sessionRows(), nil }

// requestRow is a request in the answers.
type requestRow struct {
	Number  int       `json:"number"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Op      string    `json:"op"`
	Path    string    `json:"path"`
	Paths   []string  `json:"paths,omitempty"` // of a multi, with ops
	Ops     []string  `json:"ops,omitempty"`
	Created string    `json:"created,omitempty"`
	Zxid    string    `json:"zxid"`
	Error   string    `json:"error,omitempty"`
	Fate    string    `json:"fate,omitempty"`
}

// requests returns the log, or what came after the request with a number.
func (c *Control) requests(f fields) (any, error) {
	since, err := f.count("since", 0)
	if err != nil {
		return nil, err
	}
	rows := []requestRow{}
	for _, r := range c.srv.Log() {
		if r.Number > since {
			rows = append(rows, rowOf(r))
		}
	}
	return rows, nil
}

func rowOf(r zktest.Request) requestRow {
	row := requestRow{
		Number: r.Number, Time: r.Time, Session: hex(r.Session), Op: r.Op.String(), Path: r.Path,
		Created: r.Created, Zxid: hex(r.Zxid), Fate: r.Fate,
	}
	if r.Code != zktest.CodeOK {
		row.Error = r.Code.String()
	}
	if len(r.Ops) > 0 {
		row.Paths = r.Paths
		for _, op := range r.Ops {
			row.Ops = append(row.Ops, op.String())
		}
	}
	return row
}

// nodeRow is a node in the answers. Its data are a text, or else base64.
type nodeRow struct {
	Data           *string   `json:"data,omitempty"`
	Base64         []byte    `json:"base64,omitempty"`
	EphemeralOwner string    `json:"ephemeralOwner,omitempty"`
	Container      bool      `json:"container,omitempty"`
	TTL            string    `json:"ttl,omitempty"`
	Version        int32     `json:"version"`
	Czxid          string    `json:"czxid"`
	Mzxid          string    `json:"mzxid"`
	Created        time.Time `json:"created"`
	Modified       time.Time `json:"modified"`
}

func (c *Control) tree(fields) (any, error) {
	rows := map[string]nodeRow{}
	for path, n := range c.srv.Snapshot("/") {
		row := nodeRow{
			Container: n.Container, Version: n.Stat.Version, Czxid: hex(n.Stat.Czxid), Mzxid: hex(n.Stat.Mzxid),
			Created: time.UnixMilli(n.Stat.Ctime).UTC(), Modified: time.UnixMilli(n.Stat.Mtime).UTC(),
		}
		if text := string(n.Data); utf8.ValidString(text) {
			row.Data = &text
		} else {
			row.Base64 = n.Data
		}
		switch {
		case n.TTL > 0:
			row.TTL = n.TTL.String()
		case n.Stat.EphemeralOwner != 0:
			row.EphemeralOwner = hex(n.Stat.EphemeralOwner)
		}
		rows[path] = row
	}
	return rows, nil
}

// watchRow is a watch in the answers.
type watchRow struct {
	Path    string `json:"path"`
	Kind    string `json:"kind"`
	Session string `json:"session"`
}

// leftovers returns what a test should not leave behind.
func (c *Control) leftovers(fields) (any, error) {
	left := struct {
		Sessions   []sessionRow `json:"sessions"`
		Ephemerals []string     `json:"ephemerals"`
		Watches    []watchRow   `json:"watches"`
		Faults     []string     `json:"faults"`
	}{c.sessionRows(), []string{}, []watchRow{}, c.active()}
	for _, s := range left.Sessions {
		left.Ephemerals = append(left.Ephemerals, s.Ephemerals...)
	}
	for _, w := range c.srv.WatchList() {
		left.Watches = append(left.Watches, watchRow{w.Path, w.Kind.String(), hex(w.Session)})
	}
	return left, nil
}
