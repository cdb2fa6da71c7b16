package zksync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// enter puts an entry at the tail of the queue: one round trip. It reports alone
// when the entry is the only child of the directory, which grants all that can be
// granted at all: nobody else is in the queue, and nobody can get ahead of us any more. old is given up
// whatever comes.
func (q *queue) enter(ctx context.Context, e *zkconn.Epoch, old *place) (p *place, alone bool, err error) {
	for pace := (node.Pace{}); ; {
		if q.terms != nil {
			if err := q.terms.learn(ctx, e, q.acl); err != nil {
				return nil, false, err
			}
			if q.weight > q.terms.capacity() {
				return nil, false, errTooBig
			}
		}
		p, alone, err = q.enterOnce(ctx, e, old)
		if err == nil && q.terms != nil && p.first {
			// What the base node's one child was until now, the queue or a rival's, nobody knew.
			if err = leases.refuseAt(ctx, e, q.terms.node); err != nil {
				p.leave(cleanupGrace)
				return nil, false, err
			}
		}
		var refused *node.Refused
		if q.terms == nil || !errors.As(err, &refused) {
			return p, alone, err
		}
		q.terms.forget() // they have changed, or the base node has gone
		if err := e.Sync(ctx, q.terms.node); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, false, err // or this server would go on telling the old ones
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, false, err
		}
	}
}

func (q *queue) enterOnce(ctx context.Context, e *zkconn.Epoch, old *place) (p *place, alone bool, err error) {
	n, err := node.Make(ctx, e, node.Spec{
		Dir: q.dir, ACL: q.acl, Plain: q.readOnlyDir,
		Name:  func(uuid string) string { return entryPrefix(q.kind, uuid, q.weight) },
		Data:  func() []byte { return encodeNode(q.owner(), time.Now(), q.extras) },
		Flags: zk.FlagEphemeral | zk.FlagSequence,
		Before: func() []any {
			if q.terms != nil {
				return q.terms.check()
			}
			if old == nil {
				return nil
			}
			return []any{&zk.DeleteRequest{Path: old.node, Version: -1}}
		},
		Tried: func(applied bool) {
			if old == nil {
				return
			}
			if applied {
				old.forget()
			} else {
				old.leave(0) // only a clean answer says that the transaction removed it
			}
			old = nil
		},
	})
	if old != nil {
		old.leave(0)
	}
	if err != nil {
		return nil, false, err
	}
	return q.entered(n)
}

// entered makes a place of a node that was made.
func (q *queue) entered(n *node.Node) (p *place, alone bool, err error) {
	self, ok := parseEntry(n.Name)
	if !ok || self.uuid != n.UUID {
		node.Abandon(n.Epoch, q.dir, n.UUID)
		return nil, false, fmt.Errorf("the servers made node %q, which is not what was asked for", n.Name)
	}
	self.czxid = n.Czxid
	alone = n.Dir != nil && n.Dir.NumChildren == 1 && len(q.grant(nil, self)) == 0
	p = newPlace(q, n.Epoch, self, n.Path, !alone)
	p.first = n.Dir != nil && n.Dir.Cversion == 1
	return p, alone, nil
}
