package zkconn

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// The operations of an epoch. Those that only read, and Delete, block through disconnects until
// the servers answer, ctx ends, or the epoch is over. Those that create something are sent once.

// Listing is the answer to a request for children.
type Listing struct {
	Names []string
	Stat  *zk.Stat
}

func childrenRequest(path string) request[Listing] {
	return request[Listing]{
		op: opGetChildren2, about: path, body: readRequest(path, false),
		decode: decodeListing,
	}
}

func decodeListing(r *jute.Decoder) (Listing, error) {
	names := texts(r)
	return Listing{names, stat(r)}, nil
}

// Children lists the children of path.
func (e *Epoch) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	l, err := retry(ctx, e, childrenRequest(path))
	return l.Names, l.Stat, err
}

// Exists reports whether there is a node at path, and its Stat.
func (e *Epoch) Exists(ctx context.Context, path string) (*zk.Stat, bool, error) {
	st, err := retry(ctx, e, existsRequest(path))
	if err == zk.ErrNoNode {
		return nil, false, nil
	}
	return st, err == nil, err
}

func existsRequest(path string) request[*zk.Stat] {
	return request[*zk.Stat]{
		op: opExists, about: path, body: readRequest(path, false), decode: decodeStat,
	}
}

func decodeStat(r *jute.Decoder) (*zk.Stat, error) { return stat(r), nil }

// Content is the answer to a request for a node's data.
type Content struct {
	Data []byte
	Stat *zk.Stat
}

func getRequest(path string) request[Content] {
	return request[Content]{
		op: opGetData, about: path, body: readRequest(path, false),
		decode: decodeContent,
	}
}

func decodeContent(r *jute.Decoder) (Content, error) {
	data := append([]byte(nil), r.Buffer()...)
	return Content{data, stat(r)}, nil
}

// Get reads the node at path.
func (e *Epoch) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	v, err := retry(ctx, e, getRequest(path))
	return v.Data, v.Stat, err
}

// StartGet sends a request to read the node at path, once, and does not wait for the answer.
func (e *Epoch) StartGet(path string) *Call[Content] { return start(e, getRequest(path)) }

// StartExists asks for the Stat of the node at path, once, and does not wait for the answer.
func (e *Epoch) StartExists(path string) *Call[*zk.Stat] { return start(e, existsRequest(path)) }

// StartChildren asks for the children of path, once, and does not wait for the answer.
func (e *Epoch) StartChildren(path string) *Call[Listing] { return start(e, childrenRequest(path)) }

// StartGetACL asks for the access control list of the node at path, once, and does not wait for the answer.
func (e *Epoch) StartGetACL(path string) *Call[[]zk.ACL] {
	return start(e, request[[]zk.ACL]{
		op: opGetACL, about: path, body: jute.AppendText(nil, path),
		decode: func(r *jute.Decoder) (list []zk.ACL, err error) {
			for range count(r, 12) {
				list = append(list, zk.ACL{Perms: r.Int32(), Scheme: string(r.Text()), ID: string(r.Text())})
			}
			return list, nil
		},
	})
}

// window is how many reads are under way at one time.
const window = 64

// GetEach reads nodes, many at once, and gives those that are there to f, one by one and in order. An error of f ends it.
func (e *Epoch) GetEach(ctx context.Context, paths []string, f func(i int, c Content) error) error {
	calls := make([]*Call[Content], 0, min(window, len(paths)))
	for i, path := range paths {
		for next := i + len(calls); next < len(paths) && len(calls) < window; next++ {
			calls = append(calls, e.StartGet(paths[next]))
		}
		c, err := calls[0].Wait(ctx, e)
		calls = calls[1:]
		if Unknown(err) || errors.Is(err, ErrNotSent) { // the connection was lost
			c.Data, c.Stat, err = e.Get(ctx, path)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case errors.Is(err, zk.ErrSessionExpired):
			return ErrOver
		case err == nil:
			err = f(i, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sync waits until the server has caught up with what the leader had committed.
func (e *Epoch) Sync(ctx context.Context, path string) error {
	_, err := retry(ctx, e, syncRequest(path))
	return err
}

// SyncedChildren lists the children of path as the leader of the servers knew them
// at some instant during the call. Both the sync and the listing must be answered
// on one connection: the next connection may be to a server that was not synced.
func (e *Epoch) SyncedChildren(ctx context.Context, path string) ([]string, error) {
	for pace := (Pace{First: time.Millisecond}); ; {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		at := e.Connection()
		if err := e.Sync(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		names, _, err := e.Children(ctx, path)
		if e.Connection() == at || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return names, err
		}
		// Where connections do not live long enough for two requests, another attempt at once would not help.
		if err := pace.Rest(ctx, e); err != nil {
			return nil, err
		}
	}
}

func syncRequest(path string) request[struct{}] {
	return request[struct{}]{op: opSync, about: path, body: jute.AppendText(nil, path), decode: decodeNothing}
}

func decodeNothing(*jute.Decoder) (struct{}, error) { return struct{}{}, nil }

func deleteRequest(path string) request[struct{}] {
	return request[struct{}]{
		op: opDelete, about: path, body: appendDelete(nil, &zk.DeleteRequest{Path: path, Version: -1}),
		decode: decodeNothing,
	}
}

// Delete removes the node at path, whatever its version. It is sent again after a lost
// connection, so the path must name the same node for ever. The paths of our nodes do.
func (e *Epoch) Delete(ctx context.Context, path string) error {
	_, err := retry(ctx, e, deleteRequest(path))
	return err
}

// StartDelete sends a delete, once, and does not wait for the answer.
func (e *Epoch) StartDelete(path string) *Call[struct{}] { return start(e, deleteRequest(path)) }

// Create makes a node. It is sent once.
func (e *Epoch) Create(ctx context.Context, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	r := &zk.CreateRequest{Path: path, Data: data, Acl: acl, Flags: flags}
	return e.create(ctx, opCreate, r)
}

// CreateContainer makes a container node. It is sent once.
func (e *Epoch) CreateContainer(ctx context.Context, path string, data []byte, acl []zk.ACL) error {
	r := &zk.CreateRequest{Path: path, Data: data, Acl: acl, Flags: zk.FlagContainer}
	_, err := e.create(ctx, opCreateContainer, r)
	return err
}

func (e *Epoch) create(ctx context.Context, op int32, r *zk.CreateRequest) (string, error) {
	chroot := e.makesChroot(r)
	if chroot && e.cfg.ExistingChroot {
		return "", e.missingChroot()
	}
	return start(e, request[string]{
		op: op, about: r.Path, body: appendCreate(nil, r),
		decode: func(r *jute.Decoder) (string, error) {
			if chroot {
				e.madeChroot()
			}
			return string(r.Text()), nil
		},
	}).Wait(ctx, e)
}

// StartMulti sends a transaction of *zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest and *zk.CheckVersionRequest, and does not wait for
// the answer. If the servers refuse it, the error is a *TxnError. No version that it checks becomes -1: see [NextVersion].
func (e *Epoch) StartMulti(ops ...any) *Call[[]zk.MultiResponse] { return e.startMulti(ops, nil) }

// StartMultiIf is StartMulti for a transaction that may not be needed any more when it is its turn to be written: then it
// fails with ErrNotSent. So whatever is sent after needed has changed comes after it. needed must not block.
func (e *Epoch) StartMultiIf(needed func() bool, ops ...any) *Call[[]zk.MultiResponse] {
	return e.startMulti(ops, needed)
}

func (e *Epoch) startMulti(ops []any, needed func() bool) *Call[[]zk.MultiResponse] {
	chroot := e.makesChroot(ops...)
	if chroot && e.cfg.ExistingChroot {
		return failed[[]zk.MultiResponse](e.missingChroot())
	}
	sent, leaps := leap(ops)
	body, err := multiBody(sent)
	if err != nil {
		return failed[[]zk.MultiResponse](err)
	}
	r := request[[]zk.MultiResponse]{
		op: opMulti, about: about(ops), body: body,
		decode: func(r *jute.Decoder) ([]zk.MultiResponse, error) {
			res, err := leaps.back(decodeMulti(r.Rest(), len(sent)))
			if chroot && err == nil {
				e.madeChroot()
			}
			return res, err
		},
	}
	if needed != nil {
		r.turn = func() ([]byte, bool) { return body, needed() }
	}
	return start(e, r)
}

// about is the path that a transaction is about: of what it creates, or else of its first operation. Of
// a node with a sequence number it is the directory, as only that means something to people.
func about(ops []any) string {
	first := ""
	for _, op := range ops {
		switch op := op.(type) {
		case *zk.CreateRequest:
			if op.Flags&zk.FlagSequence != 0 {
				return op.Path[:max(strings.LastIndexByte(op.Path, '/'), 1)]
			}
			return op.Path
		case *zk.DeleteRequest:
			first = cmp.Or(first, op.Path)
		case *zk.SetDataRequest:
			first = cmp.Or(first, op.Path)
		case *zk.CheckVersionRequest:
			first = cmp.Or(first, op.Path)
		}
	}
	return first
}
