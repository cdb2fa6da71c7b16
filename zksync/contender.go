package zksync

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Kind is the kind of an entry of a queue.
type Kind string

const (
	// KindLock is held alone.
	KindLock Kind = "lock"
	// KindRead is held with other readers.
	KindRead Kind = "read"
	// KindWrite is held alone, and may turn into a reader.
	KindWrite Kind = "write"
	// KindPermit asks for permits.
	KindPermit Kind = "permit"
)

// Standing is the state of a contender.
type Standing string

// The states of a contender.
const (
	Held    Standing = "held"
	Waiting Standing = "waiting"
)

// Contender is one entry of a queue.
type Contender struct {
	Position int // from 0
	Kind     Kind
	State    Standing
	Owner    Owner
	Session  int64     // of ZooKeeper
	Since    time.Time // by the owner's clock or the server's
	Token    Token     // without local hand-overs
	Node     string    // path
	ID       string    // of a candidate of an election
	Permits  int64     // of a semaphore
	Under    string    // the tokens that its owner held when it queued, as far as it said: "none" or "a,b"
}

// MarshalJSON writes what `menagerie ls --json` prints.
func (c Contender) MarshalJSON() ([]byte, error) {
	row := row{Position: c.Position, Kind: c.Kind, State: c.State, Owner: ownerRow(c.Owner), Node: c.Node, ID: c.ID, Permits: c.Permits, Under: c.Under}
	if !c.Since.IsZero() {
		row.Since = c.Since.UTC().Format(time.RFC3339)
	}
	if c.Session != 0 {
		row.Session = fmt.Sprintf("0x%x", uint64(c.Session))
	}
	if !c.Token.IsZero() {
		row.Token = c.Token.String()
	}
	return json.Marshal(row)
}

// UnmarshalJSON reads it.
func (c *Contender) UnmarshalJSON(text []byte) (err error) {
	var row row
	if err := json.Unmarshal(text, &row); err != nil {
		return err
	}
	read := Contender{Position: row.Position, Kind: row.Kind, State: row.State, Owner: Owner(row.Owner), Node: row.Node, ID: row.ID, Permits: row.Permits, Under: row.Under}
	if row.Since != "" {
		if read.Since, err = time.Parse(time.RFC3339, row.Since); err != nil {
			return err
		}
	}
	if row.Session != "" {
		id, err := strconv.ParseUint(row.Session, 0, 64)
		if err != nil {
			return err
		}
		read.Session = int64(id)
	}
	if row.Token != "" {
		if read.Token, err = ParseToken(row.Token); err != nil {
			return err
		}
	}
	*c = read
	return nil
}

// row is a Contender in JSON.
type row struct {
	Position int      `json:"position"`
	Kind     Kind     `json:"kind"`
	State    Standing `json:"state"`
	Owner    ownerRow `json:"owner"`
	Since    string   `json:"since"`
	Session  string   `json:"session"`
	Token    string   `json:"token"`
	Node     string   `json:"node"`
	ID       string   `json:"id,omitempty"`
	Permits  int64    `json:"permits,omitempty"`
	Under    string   `json:"under,omitempty"`
}

type ownerRow struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Contenders lists the entries of the queue at path in order, also those of other libraries. The path may be
// a semaphore's, or not exist.
func Contenders(ctx context.Context, s *Session, path string) (all []Contender, err error) {
	v := view(s, path)
	err = v.Run(ctx, "list", func(ctx context.Context, e *zkconn.Epoch) (err error) {
		all, err = contenders(ctx, e, v.Session, path)
		return err
	}, session.Joined)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// view is for requests that only look at a path.
func view(s *Session, path string) *session.Access {
	at := session.NewViewAccess[Option]("zksync", s.inner(), path, nil)
	at.Refuse(node.ValidatePath(path))
	return at
}

// contenders is Contenders in one session.
func contenders(ctx context.Context, e *zkconn.Epoch, s *session.Session, path string) ([]Contender, error) {
	at, entries, err := lookAt(s, path).Locate(ctx, e)
	if err != nil {
		return nil, err
	}
	list, err := at.Describe(ctx, e, entries, func() (int64, error) {
		t, err := at.Permits(ctx, e, entries)
		return t.Now(), err
	})
	all := make([]Contender, len(list))
	for i, c := range list {
		all[i] = Contender{
			Position: c.Position, Kind: Kind(c.Kind), State: Standing(c.State), Owner: Owner(c.Owner), Session: c.Session,
			Since: c.Since, Token: Token(c.Token), Node: c.Node, ID: c.ID, Permits: c.Permits, Under: c.Under,
		}
	}
	return all, err
}

// lookAt is the queue at one of the session's paths, for reading only.
func lookAt(s *session.Session, path string) *queue.Queue {
	return &queue.Queue{Dir: s.Full(path), Shown: path, Type: layout.Mutex}
}
