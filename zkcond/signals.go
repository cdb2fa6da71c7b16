package zkcond

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
)

// signals is the data of the condition's node: the signals that were sent and not yet used. It is always written at
// the version that was read. So one process overwrites nothing of another.
//
// Tokens decide which waiter a signal is for. The tokens of one lock grow with every
// hold. So a waiter with a smaller token than the signal had begun to wait
// when the signal was sent, and a waiter with the same token or a greater one had not.
type signals struct {
	Sent []sent `json:"signals,omitempty"`
	By   string `json:"by,omitempty"` // the attempt that wrote this
}

// sent is N signals under one hold of the lock, or without one: then Token is the one after that of the last waiter.
type sent struct {
	Token node.Token `json:"token"`
	N     int        `json:"n"`
}

func parseSignals(data []byte) (s signals, err error) {
	if len(data) == 0 {
		return s, nil
	}
	if err := layout.RefuseOther(layout.Cond, data, nil); err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, errs.Misuse("the node is not that of a condition; use a path of its own")
	}
	return s, nil
}

// The waiters' nodes are in one directory. Their names have the token of the hold in which
// the waiter began to wait.
const waitMark = "-wait-"

func waiterName(uuid string, t node.Token) string {
	return node.Prefix(uuid) + waitMark + t.String()
}

type waiting struct {
	name  string
	token node.Token
}

// parseWaiters returns the waiters among the children of a condition's node, in the order in which they
// began to wait.
func parseWaiters(names []string) (all []waiting) {
	for _, n := range names {
		_, text, ok := strings.Cut(n, waitMark)
		if !ok || !strings.HasPrefix(n, node.Prefix("")) {
			continue
		}
		if t, err := node.ParseToken(text); err == nil {
			all = append(all, waiting{n, t})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int {
		if c := a.token.Compare(b.token); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
	return all
}

// serve gives the signals to the waiters, in their order: each waiter takes the
// first signal that was sent after it began to wait. serve returns the signals that were taken, and the waiters without
// one. The other signals are for waiters that have left.
//
// Signals and waiters are in the order of their tokens. So a signal that is not for one waiter
// is not for any later one.
func (s signals) serve(all []waiting) (taken []sent, without []waiting) {
	i, used := 0, 0
	for k, w := range all {
		for i < len(s.Sent) && (used >= s.Sent[i].N || s.Sent[i].Token.Compare(w.token) <= 0) {
			i, used = i+1, 0
		}
		if i == len(s.Sent) {
			return taken, all[k:]
		}
		used++
		taken = send(taken, s.Sent[i].Token, 1)
	}
	return taken, nil
}

// send adds n signals under t.
func send(to []sent, t node.Token, n int) []sent {
	i, found := slices.BinarySearchFunc(to, t, func(s sent, t node.Token) int { return s.Token.Compare(t) })
	if found {
		to[i].N += n
		return to
	}
	return slices.Insert(to, i, sent{t, n})
}

// add sends a signal under t to the first waiter without one, or to all of them.
// It reports false if there is no such waiter. Waiters with t or a greater token get none: they
// began to wait later.
func (s signals) add(all []waiting, t node.Token, broadcast bool) (signals, bool) {
	taken, without := s.serve(all)
	n := 0
	for n < len(without) && without[n].token.Compare(t) < 0 {
		n++
	}
	if n == 0 {
		return s, false
	}
	if !broadcast {
		n = 1
	}
	return signals{Sent: send(taken, t, n)}, true
}

// take uses the first signal for the waiter with token t, which has waited longest.
// It reports false if there is none.
func (s signals) take(t node.Token) (signals, bool) {
	for i, g := range s.Sent {
		if g.N > 0 && g.Token.Compare(t) > 0 {
			rest := slices.Clone(s.Sent[i:]) // the waiters of earlier signals have left
			if rest[0].N--; rest[0].N == 0 {
				rest = rest[1:]
			}
			return signals{Sent: rest}, true
		}
	}
	return s, false
}
