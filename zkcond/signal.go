package zkcond

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// base is the condition's node on the servers.
func (c *Cond) base() string { return c.at.Full(c.path) }

// sending is one call of Signal or Broadcast.
type sending struct {
	all     bool
	attempt string // finds the signal after a lost reply
	// below decides which waiters the signal is for: those with smaller tokens. It is the token of the caller's hold. Without a hold it is zero
	// until the first look, which sets it behind the last waiter: a repeated attempt is not for later ones.
	below node.Token
}

// signal adds a signal. It needs no check that l still holds: at worst a waiter is woken in vain. If l is nil, the signal is
// for the waiters that are present.
func (c *Cond) signal(ctx context.Context, l *lease.Lease, all bool) error {
	s := sending{all: all, attempt: node.NewUUID()}
	if l != nil {
		s.below = l.Token()
	}
	pace := node.Pace{Free: 1}
	for first := true; ; first = false {
		err := c.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
			// The server of the session in which the lock was granted knows all waiters:
			// they began before the grant, which it reported to us. Another server may lag.
			if !first || l == nil || !l.Valid() {
				if err := e.Sync(ctx, c.base()); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
			first = false
			return c.addSignal(ctx, e, &s)
		})
		if !errors.Is(err, errAgain) {
			return err
		}
		_ = pace.Rest(ctx, nil) // the next attempt finds out whether ctx has ended
	}
}

// errAgain means that another process has written the node meanwhile, or that we may have
// written it.
var errAgain = errors.New("zkcond: again")

func (c *Cond) addSignal(ctx context.Context, e *zkconn.Epoch, n *sending) error {
	data, stat, err := e.Get(ctx, c.base())
	if errors.Is(err, zk.ErrNoNode) || err == nil && stat.NumChildren == 0 {
		return nil // nobody waits
	}
	if err != nil {
		return err
	}
	names, _, err := e.Children(ctx, c.base())
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := parseSignals(data)
	if err != nil || s.By == n.attempt {
		return err
	}
	waiters := parseWaiters(names)
	if n.below.IsZero() && len(waiters) > 0 {
		n.below = after(waiters[len(waiters)-1].token)
	}
	s, changed := s.add(waiters, n.below, n.all)
	if !changed {
		return nil
	}
	s.By = n.attempt
	return c.write(ctx, e, s, stat.Version)
}

// after is the next token. A later hold, and so a later waiter, has that one or a greater one.
func after(t node.Token) node.Token {
	t.Seq++
	return t
}

// write writes the signals in one transaction, behind the operations of before, if the node has not changed
// since it was read; else it returns errAgain.
func (c *Cond) write(ctx context.Context, e *zkconn.Epoch, s signals, version int32, before ...any) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := e.Await(ctx); err != nil {
		return err
	}
	ops := append(before, &zk.SetDataRequest{Path: c.base(), Data: data, Version: version})
	_, err = e.StartMulti(ops...).Wait(ctx, e)
	var refused *zkconn.TxnError
	switch {
	case errors.As(err, &refused) && refused.Index == len(before) && errors.Is(err, zk.ErrNoNode):
		return errAgain // the last waiter has left, and the directory was removed
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zkconn.ErrNotSent), zkconn.Unknown(err):
		return errAgain
	}
	return err
}
