package bench

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/zklatch"
)

// gate has all parties wait at a closed gate before another session opens it. A party that begins to wait after that is let
// through at once. So it is opened when all have asked what a Wait asks, and have their replies.
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
	// The first use of a path in a session asks more than later ones.
	if err := together(ctx, parties, func(ctx context.Context, g *zklatch.Gate) error { return g.Wait(ctx) }); err != nil {
		crew.Close()
		return nil, err
	}
	heard := make(chan error, len(parties))
	crew.Before = func(ctx context.Context) error {
		if err := keeper.Close(ctx); err != nil {
			return err
		}
		from := at.Meter.traffic()
		for _, g := range parties {
			go func() { heard <- g.Wait(ctx) }()
		}
		at.settle(ctx, from, int64(waitAsks*len(parties)), 0)
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

// waitAsks is how many requests a Wait at a closed gate sends: a sync, and a read that sets the watch.
const waitAsks = 2

var errEarly = errors.New("a closed gate let somebody through")
