package zkcond

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// base is the condition's node on the servers.
func (c *Cond) base() string { return c.at.Full(c.path) }

// signal adds a signal, under the hold of l. Its token decides whom it is for, so it needs no
// check that the hold is still there: at worst somebody is woken in vain.
func (c *Cond) signal(ctx context.Context, l *lease.Lease, all bool) error {
	attempt := node.NewUUID() // finds the signal after a lost reply
	pace := node.Pace{Free: 1}
	for first := true; ; first = false {
		err := c.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
			// The server of the session in which the lock was granted knows of everybody who
			// waits: they began before the grant, which it told us of. Another one may lag.
			if !first || !l.Valid() {
				if err := e.Sync(ctx, c.base()); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
			first = false
			return c.addSignal(ctx, e, l.Token(), all, attempt)
		})
		if !errors.Is(err, errAgain) {
			return err
		}
		_ = pace.Rest(ctx, nil) // the next attempt finds out whether ctx has ended
	}
}

// errAgain means that the node was written by somebody else meanwhile, or may have been
// written by us.
var errAgain = errors.New("zkcond: again")

func (c *Cond) addSignal(ctx context.Context, e *zkconn.Epoch, t zksync.Token, all bool, attempt string) error {
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
	if err != nil || s.By == attempt {
		return err
	}
	s, changed := s.add(parseWaiters(names), t, all)
	if !changed {
		return nil
	}
	s.By = attempt
	return c.write(ctx, e, s, stat.Version)
}

// write writes the signals, along with what else goes into the transaction, if nobody else has
// since they were read; else it returns errAgain.
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
		return errAgain // the last one who waited has left, and the directory with him
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zkconn.ErrNotSent), zkconn.Unknown(err):
		return errAgain
	}
	return err
}
