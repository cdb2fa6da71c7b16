package zkshard

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// move takes the steps of the move that are due when no process with the old list is left. It ends when they are taken, by this
// process or others.
func (s *Shards) move() {
	for pace := (node.Pace{Free: 1}); ; _ = pace.Rest(s.ctx, nil) {
		for _, x := range s.from {
			if x.untilAlone(s.ctx) != nil {
				return // it was refused, or Close has begun
			}
		}
		if done, err := s.advance(s.ctx); done || err != nil {
			return
		}
	}
}

// advance takes all steps that are due: see doc.go, where their order is argued. done says that none is left.
func (s *Shards) advance(ctx context.Context) (done bool, err error) {
	now := make(map[*ensemble]record.Version[terms])
	begun := false // it is open somewhere, so all were closed
	for _, x := range s.all {
		v, alone, err := x.look(ctx)
		if err != nil {
			return false, err
		}
		now[x] = v
		first := now[s.all[0]].T
		if !same(v.T.From, s.wish.from) || !same(v.T.To, s.wish.to) || v.T.Generation != first.Generation {
			return false, nil
		}
		begun = begun || v.T.Stage == opened
		if !alone { // so that an old process that was cut off from one ensemble is not refused there while others run
			return false, nil
		}
	}
	for _, x := range s.all {
		if v := now[x]; !begun && v.T.Stage == moving {
			// The servers refuse this while the directory has a node: then the stage stays, and with it the order.
			if ok, err := x.become(ctx, &v, closed, listDir(v.T.Generation-1), ""); !ok {
				return false, err
			}
			now[x] = v
		}
	}
	// Here each ensemble of both lists is closed, by an answer of its servers.
	for _, x := range s.to {
		if v := now[x]; v.T.Stage == closed {
			if ok, err := x.become(ctx, &v, opened, "", listDir(v.T.Generation)); !ok {
				return false, err
			}
		}
	}
	return true, nil
}

// look reads the record. alone says that no process with the old list is on the ensemble.
func (x *ensemble) look(ctx context.Context) (v record.Version[terms], alone bool, err error) {
	err = x.at.Run(ctx, "move", func(ctx context.Context, e *zkconn.Epoch) error {
		if v, err = x.record.Latest(ctx, e); err != nil {
			return err
		}
		st, there, err := e.Exists(ctx, x.record.Base+"/"+listDir(v.T.Generation-1))
		alone = !there || st.NumChildren == 0
		return err
	})
	return v, alone, err
}

// become is one step of the move. It is not ok if the record has changed meanwhile, or an old process has entered.
func (x *ensemble) become(ctx context.Context, v *record.Version[terms], stage, remove, add string) (ok bool, err error) {
	next := v.T
	next.Stage = stage
	err = x.at.Run(ctx, "move", func(ctx context.Context, e *zkconn.Epoch) error {
		err := x.change(ctx, e, v.Number, step{next: &next, remove: remove, add: add})
		if ok = err == nil; record.Conflict(err) {
			err = nil
		}
		return err
	})
	if ok {
		v.T, v.Number = next, zkconn.NextVersion(v.Number)
	}
	return ok, err
}

// untilAlone waits until no process with the old list is on the ensemble. It watches one of them, whichever, so not every
// departure costs requests.
func (x *ensemble) untilAlone(ctx context.Context) error {
	return x.at.Run(ctx, "move", func(ctx context.Context, e *zkconn.Epoch) error {
		for {
			v, err := x.record.Latest(ctx, e)
			if err != nil {
				return err
			}
			dir := x.record.Base + "/" + listDir(v.T.Generation-1)
			names, _, err := e.Children(ctx, dir)
			switch {
			case errors.Is(err, zk.ErrNoNode), err == nil && len(names) == 0:
				return nil
			case err != nil:
				return err
			}
			if err := record.UntilGone(ctx, e, record.Pick(dir, names), 0, nil); err != nil {
				return err
			}
		}
	})
}

// parting is how long Close waits to take the steps of a move that are due.
const parting = time.Second

// part takes them before Close, if all ensembles answer: perhaps no other process of the move is left to do it.
func (s *Shards) part() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), parting, errs.ErrClosed)
	defer cancel()
	_, _ = s.advance(ctx)
}
