package durable_test

import (
	"encoding/json"
	"strings"

	"github.com/go-menagerie/menagerie/internal/testing/proving/weather"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// record is the data of the base node.
type record struct {
	Hold *struct {
		Token zksync.Token
		Owner string
	}
}

// ledger is the plain model: it follows what the server does to the nodes of a lock.
type ledger struct {
	w    *weather.World
	base string

	// All of this is guarded by w.Mu.
	holds   []*entry // in the order of their grants
	lasting *entry
}

// entry is one hold.
type entry struct {
	token zksync.Token
	owner string
	ended int  // when; 0 while it lasts
	known bool // a process was told of it
}

func newLedger(w *weather.World) *ledger {
	l := &ledger{w: w, base: weather.TestPath + "/zkdurable"}
	w.Srv.OnCommit(l.commit)
	return l
}

func (l *ledger) commit(txn zktest.Txn) {
	l.w.Mu.Lock()
	defer l.w.Mu.Unlock()
	now := l.w.Tick()
	var node *zktest.Change
	for i, c := range txn.Changes {
		if strings.HasPrefix(c.Path, l.base+"/hold-") && c.Kind != zktest.DataChanged {
			l.w.Must(node == nil, "one transaction has two holds")
			node = &txn.Changes[i]
		}
	}
	if node == nil {
		return
	}
	token, err := zksync.ParseToken(strings.TrimPrefix(node.Path, l.base+"/hold-"))
	l.w.Must(err == nil, "%s: %v", node.Path, err)
	if node.Kind == zktest.Deleted {
		l.w.Must(l.lasting != nil && l.lasting.token == token, "%s ends, and does not last", token)
		l.lasting.ended, l.lasting = now, nil
		return
	}
	l.w.Must(l.lasting == nil, "%s is granted while another holds", token)
	l.w.Must(len(l.holds) == 0 || token.Compare(l.holds[len(l.holds)-1].token) > 0, "%s does not grow", token)
	l.lasting = &entry{token: token}
	l.holds = append(l.holds, l.lasting)
}

// read takes from the base node who holds, and how the hold before has ended. mu is held, and nothing happens.
func (l *ledger) read(data []byte) {
	var r record
	l.w.Must(json.Unmarshal(data, &r) == nil, "the base node is %s", data)
	l.w.Must((r.Hold != nil) == (l.lasting != nil), "the base node is %s, and %v lasts", data, l.lasting)
	if r.Hold != nil && l.lasting != nil {
		l.w.Must(r.Hold.Token == l.lasting.token, "the base node is of another hold")
		l.w.Must(!l.lasting.known || r.Hold.Owner == l.lasting.owner, "the base node is of another owner")
	}
}

// of is the hold with this token.
func (l *ledger) of(token zksync.Token) *entry {
	for _, h := range l.holds {
		if h.token == token {
			return h
		}
	}
	l.w.Must(false, "%s was never granted", token)
	return &entry{}
}

// endedBy reports whether the hold with this token had ended at an instant.
func (l *ledger) endedBy(token zksync.Token, at int) bool {
	h := l.of(token)
	return h.ended != 0 && h.ended <= at
}
