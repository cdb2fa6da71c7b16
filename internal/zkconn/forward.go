package zkconn

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
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

// ErrBackwards ends a client with Config.ForwardOnly whose servers have lost transactions.
var ErrBackwards = errs.Kind("the servers have lost transactions that this session has seen (WithForwardOnly): their tokens and values may be older than known ones", errs.ErrStale)

// changed reports whether an answer comes from a transaction that a quorum has stored. Servers may refuse access by
// what they know themselves.
func changed(op, code int32) bool { return op != opSync && code != codeNoAuth && led(op, code) }

// compare looks whether the answer to a change, which has this zxid, is older than what was seen before.
// Its caller is the goroutine that reads the connection, before anybody knows of the answer.
func (e *Epoch) compare(zxid int64) error {
	c := e.client
	seen := c.seen.Load()
	if zxid <= 0 || zxid >= seen {
		return nil
	}
	if c.cfg.ForwardOnly {
		err := fmt.Errorf("%w: zxid 0x%x after 0x%x", ErrBackwards, zxid, seen)
		c.refuse("the servers have lost transactions", err)
		return err
	}
	if c.seen.CompareAndSwap(seen, zxid) { // from here on this is the history
		e.Go(func() {
			c.cfg.Logger.Warn("the servers have lost transactions: tokens and values may be older than known ones", "zxid", sessionID(zxid), "seen", sessionID(seen))
		})
	}
	return nil
}

// ahead reports whether calls may begin in the epoch: with Config.ForwardOnly only when its servers have been compared.
func (e *Epoch) ahead() bool { return !e.cfg.ForwardOnly || e.number == 1 || e.compared.Load() }

// prove sends a transaction that changes nothing, so that reads alone do not show older data.
func (e *Epoch) prove() {
	if e.Await(e.alive) != nil {
		return
	}
	body, _ := multiBody([]any{&zk.CheckVersionRequest{Path: "/", Version: -1}})
	_, _ = retry(e.alive, e, request[struct{}]{op: opMulti, about: "/", body: body, decode: decodeNothing})
	e.compared.Store(true) // a refusal would have ended the epoch
	e.client.mu.Lock()
	defer e.client.mu.Unlock()
	e.client.wake()
}
