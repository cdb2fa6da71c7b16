package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
)

// history is where the order of transactions and the life of sessions are decided: what the members
// of an ensemble have in common. What a server has applied of it so far is its tree.
type history struct {
	mu lock // guards this and the state of the servers that share it

	out      *tree.Outstanding
	pending  []*request // submitted, not finished; oldest first
	zxid     int64      // the last one given out
	sessions map[int64]*session
	expiry   *expiryQueue
	expiryAt time.Duration // when expiryTimer is due; 0 when unset

	expiryTimer, commitTimer *time.Timer
}

func newHistory(tick time.Duration) *history {
	return &history{out: tree.NewOutstanding(), sessions: map[int64]*session{}, expiry: newExpiryQueue(tick)}
}
