package table

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Every bucket has a gate (package gate), so one key that many change does not delay those who change keys of other buckets. All
// gates have one queue.

// gate is the gate of a bucket.
func (t *Table) gate(bucket string) *gate.Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[bucket]
	if g == nil {
		name := gateName + strings.TrimPrefix(bucket, t.buckets()+"/"+bucketName)
		g = &gate.Gate{Node: t.terms.Base + "/" + name, ACL: t.at.ACL(), Turns: t.turns}
		t.gates[bucket] = g
	}
	return g
}

// errAlone is for an attempt that must not be made as long as others may make changes.
var errAlone = errors.New("the gate must be closed")

// attempts calls try until its error is not gate.ErrRefused.
func (t *Table) attempts(ctx context.Context, e *zkconn.Epoch, bucket string, try func(context.Context, *zkconn.Epoch, *gate.Pass) error) error {
	pass := t.gate(bucket).Pass()
	defer pass.Leave()
	for pace, alone := (node.Pace{Free: 4}), false; ; {
		in, _, err := pass.Next(ctx, e, alone)
		if err != nil {
			return err
		}
		e = in
		switch err := try(ctx, e, pass); {
		case errors.Is(err, errAlone):
			alone = true
		case !errors.Is(err, gate.ErrRefused):
			return err
		}
		pass.Refused()
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// do makes a change, which is applied once, and only if the gate lets it.
func (t *Table) do(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass, ops ...any) ([]zk.MultiResponse, error) {
	return pass.Do(func(ops ...any) ([]zk.MultiResponse, error) { return t.apply(ctx, e, ops...) }, ops...)
}
