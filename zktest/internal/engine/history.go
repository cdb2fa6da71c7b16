package engine

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
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

// forget tells those who wait inside the process that their requests come to nothing.
func forget(lost []*request) {
	for _, r := range lost {
		if r.reply != nil {
			r.code = wire.CodeSessionExpired
			r.reply <- r
		}
	}
}

func stopTimer(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}
