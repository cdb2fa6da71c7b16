package record

import (
	"context"
	"sync"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Party is an ephemeral node with a name that no other request has. It counts once, also if the request for it
// arrives several times.
type Party struct {
	Dir, Name string // the name must be no prefix of another one
	Data      []byte
	ACL       []zk.ACL
	Checks    []any // what the transaction checks before

	// Lingers is set if a request may yet be applied, or applied again: after a removal the node must be looked for again.
	Lingers bool
}

// Path is where the node is.
func (p *Party) Path() string { return p.Dir + "/" + p.Name }

// Join makes the node. After an error the reaper removes the node if there is one. If one of Checks is
// refused the error tells which.
func (p *Party) Join(ctx context.Context, e *zkconn.Epoch) error {
	var call *zkconn.Call[[]zk.MultiResponse]
	ops := append(p.Checks[:len(p.Checks):len(p.Checks)],
		&zk.CreateRequest{Path: p.Path(), Data: p.Data, Acl: p.ACL, Flags: zk.FlagEphemeral})
	err := Insist(ctx, e, func() error {
		call = e.StartMulti(ops...)
		_, err := call.Wait(ctx, e)
		if Answered(call) { // perhaps when ctx ended
			_, err = call.Result()
		}
		p.Lingers = p.Lingers || zkconn.Unknown(err)
		if RefusedAt(err, len(p.Checks), zk.ErrNodeExists) {
			p.Lingers = true
			return nil // by this very request, which arrived twice
		}
		return err
	})
	switch {
	case err == nil:
		return nil
	case call != nil && !Answered(call):
		e.AmbiguousCreate(p.Dir, p.Name, e.Connection()) // it may linger in a server that we come back to
		node.Settle(e, e.Reap(zkconn.Orphan{Dir: p.Dir, Prefix: p.Name, Pending: call.Done(), Outcome: func() (string, bool) {
			_, err := call.Result()
			return "", err == nil || zkconn.Unknown(err)
		}}), node.Grace)
	case p.Lingers:
		e.AmbiguousCreate(p.Dir, p.Name, e.Connection())
		node.Settle(e, e.Reap(zkconn.Orphan{Dir: p.Dir, Prefix: p.Name}), node.Grace)
	}
	return err
}

// Closer is the part of a session that tells when its user closes it.
type Closer interface {
	// Spawn runs f in a goroutine for which the closing waits, or reports false once that has begun.
	Spawn(f func()) bool
	// Closed is closed then.
	Closed() <-chan struct{}
}

// NodeAtClose removes a node when the session is closed, unless forget is called before. It is for external connections, whose
// ZooKeeper session lives on, and the node with it; on any other connection the node goes with the session.
func NodeAtClose(s Closer, e *zkconn.Epoch, dir, node string) (forget func()) {
	if e.Ordered() {
		return func() {}
	}
	forgotten := make(chan struct{})
	AtClose(s, forgotten, func() { e.Reap(zkconn.Orphan{Dir: dir, Node: node}) })
	return sync.OnceFunc(func() { close(forgotten) })
}

// AtClose calls remove when the session is closed, unless forgotten is closed before.
func AtClose(s Closer, forgotten <-chan struct{}, remove func()) {
	if !s.Spawn(func() {
		select {
		case <-s.Closed():
			remove()
		case <-forgotten:
		}
	}) {
		remove()
	}
}
