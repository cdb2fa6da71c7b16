package zkconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// ListChildren is the request for the children of path.
func ListChildren(path string) Request[Listing] {
	return Request[Listing]{op: opGetChildren2, about: path, body: readRequest(path, false), decode: decodeListing}
}

func decodeListing(r *jute.Decoder) (Listing, error) {
	names := texts(r)
	return Listing{names, stat(r)}, nil
}

// Children lists the children of path.
func (e *Epoch) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	l, err := retry(ctx, e, ListChildren(path))
	return l.Names, l.Stat, err
}

// ReadStat is the request for the Stat of the node at path.
func ReadStat(path string) Request[*zk.Stat] {
	return Request[*zk.Stat]{op: opExists, about: path, body: readRequest(path, false), decode: decodeStat}
}

func decodeStat(r *jute.Decoder) (*zk.Stat, error) { return stat(r), nil }

// Exists reports whether there is a node at path, and its Stat.
func (e *Epoch) Exists(ctx context.Context, path string) (*zk.Stat, bool, error) {
	st, err := retry(ctx, e, ReadStat(path))
	if err == zk.ErrNoNode {
		return nil, false, nil
	}
	return st, err == nil, err
}

// Content is the answer to a request for a node's data.
type Content struct {
	Data []byte
	Stat *zk.Stat
}

// ReadData is the request for the data of the node at path.
func ReadData(path string) Request[Content] {
	return Request[Content]{op: opGetData, about: path, body: readRequest(path, false), decode: decodeContent}
}

func decodeContent(r *jute.Decoder) (Content, error) {
	data := append([]byte(nil), r.Buffer()...)
	return Content{data, stat(r)}, nil
}

// Get reads the node at path.
func (e *Epoch) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	v, err := retry(ctx, e, ReadData(path))
	return v.Data, v.Stat, err
}

// ReadACL is the request for the access control list of the node at path.
func ReadACL(path string) Request[[]zk.ACL] {
	return Request[[]zk.ACL]{
		op: opGetACL, about: path, body: jute.AppendText(nil, path),
		decode: func(r *jute.Decoder) (list []zk.ACL, err error) {
			for range count(r, 12) {
				list = append(list, zk.ACL{Perms: r.Int32(), Scheme: string(r.Text()), ID: string(r.Text())})
			}
			return list, nil
		},
	}
}

// ACL reads the access control list of the node at path.
func (e *Epoch) ACL(ctx context.Context, path string) ([]zk.ACL, error) {
	return retry(ctx, e, ReadACL(path))
}

// window is how many reads are under way at one time.
const window = 64

// GetEach reads nodes, many at once, and gives those that are there to f, one by one and in order. An error of f ends it.
func (e *Epoch) GetEach(ctx context.Context, paths []string, f func(i int, c Content) error) error {
	calls := make([]*Call[Content], 0, min(window, len(paths)))
	for i, path := range paths {
		for next := i + len(calls); next < len(paths) && len(calls) < window; next++ {
			calls = append(calls, Start(e, ReadData(paths[next])))
		}
		c, err := calls[0].Wait(ctx, e)
		calls = calls[1:]
		if Unknown(err) || errors.Is(err, ErrNotSent) { // the connection was lost
			c, err = retry(ctx, e, ReadData(path))
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err == nil:
			err = f(i, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadMany is the request for the data of several nodes. Of one that is not there the Stat is nil.
func ReadMany(paths []string) Request[[]Content] {
	var body []byte
	for _, p := range paths {
		body = append(appendOpHeader(body, opGetData, 0), readRequest(p, false)...)
	}
	return Request[[]Content]{
		op: opMultiRead, about: paths[0], body: appendOpHeader(body, -1, 1),
		decode: func(r *jute.Decoder) ([]Content, error) {
			all, err := contents(r)
			if err == nil && len(all) != len(paths) {
				err = &unknownError{fmt.Errorf("%d results for %d reads", len(all), len(paths))}
			}
			return all, err
		},
	}
}

// What one request of GetMany reads, at most. An answer may be as long as the data of all its nodes, and the server keeps it in memory.
// So the first one asks for no more than [Epoch.GetEach] does at one time, and the others for as many as were a megabyte if
// each were as long as the longest so far.
const (
	manyAtFirst   = window
	mostMany      = 2000
	mostManyPaths = 256 << 10
	mostManyData  = 1 << 20
)

// GetMany is GetEach with as few requests as that allows. Servers before 3.6 have no such request.
func (e *Epoch) GetMany(ctx context.Context, paths []string, f func(i int, c Content) error) error {
	for begin, longest := 0, 0; begin < len(paths); {
		most := manyAtFirst
		if begin > 0 {
			most = min(mostMany, max(manyAtFirst, mostManyData/(jute.StatSize+longest)))
		}
		end, size := begin, 0
		for end < len(paths) && end < begin+most && (end == begin || size+len(paths[end]) <= mostManyPaths) {
			size += len(paths[end])
			end++
		}
		give := func(i int, c Content) error { longest = max(longest, len(c.Data)); return f(begin+i, c) }
		if err := e.getTogether(ctx, paths[begin:end], give); err != nil {
			return err
		}
		begin = end
	}
	return nil
}

// getTogether is GetMany with one request, if the servers know it, and this client takes the answer.
func (e *Epoch) getTogether(ctx context.Context, paths []string, f func(i int, c Content) error) error {
	all, err := retry(ctx, e, ReadMany(paths))
	if Unimplemented(err) || errors.Is(err, ErrTooLong) {
		return e.GetEach(ctx, paths, f)
	}
	for i, c := range all {
		if err == nil && c.Stat != nil {
			err = f(i, c)
		}
	}
	return err
}

// Sync waits until the server has caught up with what the leader had committed.
func (e *Epoch) Sync(ctx context.Context, path string) error {
	_, err := retry(ctx, e, SyncAt(path))
	return err
}

// synced runs a read of path behind a sync. Both must be answered on one connection, since the next one may be to a
// server that was not synced: then it runs them again. A node that is missing is an answer like any other.
func synced[T any](ctx context.Context, e *Epoch, r Request[T]) (T, error) {
	var none T
	for pace := (Pace{First: time.Millisecond}); ; {
		if err := e.Await(ctx); err != nil {
			return none, err
		}
		at := e.Connection()
		if err := e.Sync(ctx, r.about); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return none, err
		}
		v, err := retry(ctx, e, r)
		if e.Connection() == at || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return v, err
		}
		// Where connections do not live long enough for two requests, another attempt at once would not help.
		if err := pace.Rest(ctx, e); err != nil {
			return none, err
		}
	}
}

// SyncedChildren lists the children of path as the leader of the servers knew them at some instant during the call.
func (e *Epoch) SyncedChildren(ctx context.Context, path string) ([]string, error) {
	l, err := synced(ctx, e, ListChildren(path))
	return l.Names, err
}

// FindChroot returns an error if the chroot does not exist, as the leader of the servers knows it.
func (e *Epoch) FindChroot(ctx context.Context) error {
	_, err := synced(ctx, e, ReadStat(e.cfg.Chroot))
	if err == zk.ErrNoNode {
		return e.missingChroot()
	}
	return err
}

// SyncAt is the request of [Epoch.Sync].
func SyncAt(path string) Request[struct{}] {
	return Request[struct{}]{op: opSync, about: path, body: jute.AppendText(nil, path), decode: decodeNothing}
}

func decodeNothing(*jute.Decoder) (struct{}, error) { return struct{}{}, nil }

// DeleteNode is the request to remove the node at path, whatever its version.
func DeleteNode(path string) Request[struct{}] {
	return Request[struct{}]{
		op: opDelete, about: path, body: appendDelete(nil, &zk.DeleteRequest{Path: path, Version: -1}),
		decode: decodeNothing,
	}
}

// Delete removes the node at path, whatever its version. It is sent again after a lost
// connection, so the path must name the same node for ever. The paths of our nodes do.
func (e *Epoch) Delete(ctx context.Context, path string) error {
	_, err := retry(ctx, e, DeleteNode(path))
	return err
}

// Create makes a node; flags may be those of a container. It is sent once.
func (e *Epoch) Create(ctx context.Context, path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	r := &zk.CreateRequest{Path: path, Data: data, Acl: acl, Flags: flags}
	applied, err := e.creating(r)
	if err != nil {
		return "", err
	}
	op := int32(opCreate)
	if flags == zk.FlagContainer {
		op = opCreateContainer
	}
	return Start(e, Request[string]{
		op: op, about: path, body: appendCreate(nil, r),
		decode: func(r *jute.Decoder) (string, error) {
			applied()
			return string(r.Text()), nil
		},
	}).Wait(ctx, e)
}

// StartMulti sends a transaction of *zk.CreateRequest, *zk.DeleteRequest,
// *zk.SetDataRequest and *zk.CheckVersionRequest, and does not wait for
// the answer. If the servers refuse it, the error is a *TxnError. No version that it checks becomes -1: see [NextVersion].
func (e *Epoch) StartMulti(ops ...any) *Call[[]zk.MultiResponse] { return e.StartMultiIf(nil, ops...) }

// StartMultiIf is StartMulti for a transaction that may not be needed any more when it is its turn to be written: then it
// fails with ErrNotSent. So whatever is sent after needed has changed comes after it. needed must not block.
func (e *Epoch) StartMultiIf(needed func() bool, ops ...any) *Call[[]zk.MultiResponse] {
	applied, err := e.creating(ops...)
	if err != nil {
		return failed[[]zk.MultiResponse](err)
	}
	sent, leaps := leap(ops)
	body, err := multiBody(sent)
	if err != nil {
		return failed[[]zk.MultiResponse](err)
	}
	r := Request[[]zk.MultiResponse]{
		op: opMulti, about: subject(ops), body: body,
		decode: func(r *jute.Decoder) ([]zk.MultiResponse, error) {
			res, err := leaps.back(decodeMulti(r.Rest(), len(sent)))
			if err == nil {
				applied()
			}
			return res, err
		},
	}
	if needed != nil {
		r.turn = func() ([]byte, bool) { return body, needed() }
	}
	return Start(e, r)
}

// subject is the path that a transaction is about: of what it creates, or else of its first operation. Of
// a node with a sequence number it is the directory, as only that means something to people.
func subject(ops []any) string {
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
