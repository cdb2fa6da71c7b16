package zkcond

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// signals is the data of the condition's node: those that were sent and not used up. It is
// written only by who holds the lock, always at the version that was read, so that who lost
// the lock without knowing overwrites nothing.
//
// Which waiter a signal is for is decided by tokens: those of one lock grow with every
// hold, so whoever waits under a smaller token than that of the signal had begun to wait
// when it was sent, and whoever has a greater one had not.
type signals struct {
	Sent []sent `json:"signals,omitempty"`
	By   string `json:"by,omitempty"` // the attempt that wrote this
}

// sent is N signals under one hold of the lock.
type sent struct {
	Token zksync.Token `json:"token"`
	N     int          `json:"n"`
}

func parseSignals(data []byte) (s signals, err error) {
	if len(data) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%w: the node is not that of a condition; use a path of its own", zksync.ErrMisuse)
	}
	return s, nil
}

// Waiters stand in one directory, in nodes that are named after the token of the hold in which
// they began to wait.
const waitMark = "-wait-"

func waiterName(uuid string, t zksync.Token) string {
	return node.Prefix(uuid) + waitMark + t.String()
}

type waiting struct {
	name  string
	token zksync.Token
}

// parseWaiters returns the waiters among the children of a condition's node, the one who has
// waited longest first.
func parseWaiters(names []string) (all []waiting) {
	for _, n := range names {
		_, text, ok := strings.Cut(n, waitMark)
		if !ok || !strings.HasPrefix(n, node.Prefix("")) {
			continue
		}
		if t, err := zksync.ParseToken(text); err == nil {
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

// serve gives the signals to the waiters, which are in order, as far as they go: each takes the
// first that was sent after he began to wait. It returns those taken, and the waiters who have
// none. Signals that are left over are for waiters who have gone.
//
// The signals are in the order of their tokens, and so are the waiters: whom the first
// signal is not for, it is not for any later one either.
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
func send(to []sent, t zksync.Token, n int) []sent {
	i, found := slices.BinarySearchFunc(to, t, func(s sent, t zksync.Token) int { return s.Token.Compare(t) })
	if found {
		to[i].N += n
		return to
	}
	return slices.Insert(to, i, sent{t, n})
}

// add sends a signal under t to the first of the waiters who has none, or to all of them.
// It reports false if there is nobody to send it to. Whoever began to wait under t or later
// is not meant: there are such only if the hold of t has been lost.
func (s signals) add(all []waiting, t zksync.Token, broadcast bool) (signals, bool) {
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

// take uses the first signal up that is for somebody who waits under t, the longest of all.
// It reports false if there is none.
func (s signals) take(t zksync.Token) (signals, bool) {
	for i, g := range s.Sent {
		if g.N > 0 && g.Token.Compare(t) > 0 {
			rest := slices.Clone(s.Sent[i:]) // what is before is for nobody any more
			if rest[0].N--; rest[0].N == 0 {
				rest = rest[1:]
			}
			return signals{Sent: rest}, true
		}
	}
	return s, false
}
