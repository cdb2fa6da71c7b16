package bench

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/go-menagerie/menagerie/zklatch"
)

// gate has all parties wait at a closed gate before another session opens it. A party that begins to wait after that is let
// through at once. So it is opened when nothing has been sent for some time (settle).
func gate(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, at.Clients+1)
	if err != nil {
		return nil, err
	}
	var gates []*zklatch.Gate
	for _, s := range all {
		gates = append(gates, zklatch.NewGate(s, at.Path+"/gate"))
	}
	keeper, parties := gates[0], gates[1:]
	heard := make(chan error, len(parties))
	crew.Before = func(ctx context.Context) error {
		if err := keeper.Close(ctx); err != nil {
			return err
		}
		var coming sync.WaitGroup
		for _, g := range parties {
			coming.Add(1)
			go func() {
				coming.Done()
				heard <- g.Wait(ctx)
			}()
		}
		coming.Wait()
		at.settle(ctx)
		select {
		case err := <-heard:
			return cmp.Or(err, errEarly)
		default:
			return nil
		}
	}
	crew.Step = func(ctx context.Context) error {
		err := keeper.Open(ctx)
		for range parties {
			select {
			case e := <-heard:
				err = errors.Join(err, e)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return err
	}
	return crew, nil
}

var errEarly = errors.New("a closed gate let somebody through")
