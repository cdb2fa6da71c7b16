package zkconn

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// Servers whose data were lost or replaced count zxids from a smaller number on, and show what was there before. A
// session that reconnects to them is refused by its last zxid. A new session is not, because it names none.
//
// It cannot name one: a server that lags would refuse it, too, and may truthfully answer reads and pings with a smaller zxid
// than an earlier session has seen elsewhere. The same holds for the handshake, where sessions are local to a
// server (localSessionsEnabled), and for a sync, which a leader that was deposed and does not know it yet answers. But the
// answer to a change comes from a transaction that a quorum has stored after the request was sent. Each
// answer before that showed only what a quorum had stored by then. Quorums overlap, so the answer to a change has a
// greater zxid than all that was seen before it was sent. If it has a smaller one, the history is another.
//
// On one connection zxids do not fall, and the next begins when the last is closed. So what was seen by the
// time of the answer, and after the request was sent, was seen on the same connection, and is not greater.

// stored implements owner: it compares the zxid of the answer to a change with what was seen before.
// Its caller is the goroutine that reads the connection, before any caller has the answer.
func (t *tenure) stored(zxid int64) error {
	seen := t.newest.Load()
	if zxid <= 0 || zxid >= seen {
		return nil
	}
	if t.cfg.ForwardOnly {
		err := fmt.Errorf("%w: zxid 0x%x after 0x%x", ErrBackwards, zxid, seen)
		t.client.refuse(err)
		return err
	}
	if t.newest.CompareAndSwap(seen, zxid) { // from here on this is the history
		t.Go(func() {
			t.cfg.Log.Once("transactions", "").Warn("the servers have lost transactions: tokens and values may be older than known ones",
				"session", logs.ID(t.ID()), "error", fmt.Errorf("zxid %s after %s", logs.ID(zxid), logs.ID(seen)))
		})
	}
	return nil
}

// enter is what comes before calls may begin.
func (t *tenure) enter() {
	if t.Await(t.alive) != nil {
		return
	}
	if t.compares() {
		t.compare() // a refusal would have ended the epoch
	}
	if admit := t.cfg.Admit; admit != nil {
		if err := admit(t.alive, t.Epoch); err != nil {
			if t.alive.Err() == nil && !errors.Is(err, ErrOver) {
				t.client.refuse(err)
			}
			return
		}
	}
	t.entered.Store(true)
	t.client.mu.Lock()
	defer t.client.mu.Unlock()
	t.client.wake()
}

// compare sends a transaction that changes nothing, so that reads alone do not show older data.
func (t *tenure) compare() {
	body, _ := multiBody([]any{&zk.CheckVersionRequest{Path: "/", Version: -1}})
	_, _ = retry(t.alive, t.Epoch, Request[struct{}]{op: opMulti, about: "/", body: body, decode: decodeNothing})
}
