// Package table keeps many entries on the servers, each in a node of its own: the keys of a map or a set. Keys are any
// text, and values any bytes. Every change is applied once, and may depend on what was there before.
//
// # Why a change finds the entry that was read
//
// Its transaction must fail if the entry is no longer the one that was read. The version of its node says whether the data
// has changed, but not whether the entry was removed and created again: the versions of each node begin at 0. So every
// removal of an entry also writes to its bucket, and the transaction checks the version of the bucket:
//
//   - The version of the bucket that is checked was seen before the entry was read, in the same session. Within a
//     session no answer is older than an earlier one. So the bucket had this version when the entry was read, or before.
//   - If the bucket has it still at the transaction, no entry of the bucket was removed since. So the entry that was read is
//     there, and its version says whether it has other data.
//   - If there was no entry, the transaction creates one. The servers refuse that if there is one by then.
//
// Only an administrator removes a bucket: one that is created again has the versions of before once more.
//
// The version of a bucket is kept from one call to the next. So without removals a change costs a read and a
// transaction. After a removal by another session, the first change in the bucket is refused, and reads both again.
// After 4294967295 changes a version is -1, which the servers take for any. Then the gate is closed before the reads.
//
// # When a result is as new as the call
//
// A server may lag behind, so what was read first may be older than the call. If the transaction is applied, that does not
// matter. A refusal has come after everything that caused it, through the same server. So what is read after it is
// at most as old as the refusal. Where nothing is to be changed, a sync comes before the result.
package table

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Table is a table at a path. It is safe for use by many goroutines.
type Table struct {
	at    *session.Access
	terms record.Terms[terms]

	turns *queue.Queue // see gates
	gates map[string]*gate.Gate

	mu    sync.Mutex
	known bool   // whether there is a table; a call that is under way when that ends still uses most
	most  uint32 // how many buckets there may be
	// The versions of buckets that were seen in the session e: see change.go.
	e        *zkconn.Epoch
	removals map[string]int32 // by bucket: each removal in it writes to it
}

// terms is the data of the base node. Below the base node there are
//
//	writers                        the writers, see package writers. They are not below keys, so watchers do not hear of them
//	queue                          of those who were refused several times
//	open-<number>                  the gate of a bucket, see package gate; it is made with the bucket
//	keys/b-<number>                the buckets; each is made with its first entry, and stays. A removal writes to it
//	keys/b-<number>/<escaped key>  the entries. The data is the value
type terms struct {
	Buckets uint32 `json:"buckets"`
}

// Of 100 000 keys, 256 buckets have 400 each. A listing of a bucket stays below 1 MB with some 20 000 names of 50 bytes in
// it, so with five million keys. A map of few keys has no more buckets than keys.
const (
	newBuckets  = 256
	mostBuckets = 1 << 16
)

// errRemoved is the error when a map has lost nodes that only a removal by hand deletes.
var errRemoved = fmt.Errorf("%w: somebody has removed nodes of it; remove the rest, and the next change makes it anew", errs.ErrBroken)

// New names the table of a type (see package layout) at the path of at. It does no I/O.
func New(at *session.Access, kind string) *Table {
	t := &Table{at: at, gates: map[string]*gate.Gate{}}
	if at.Misuse() != nil {
		return t
	}
	t.turns = at.Queue("/"+kind+"/queue", queue.KindLock)
	t.terms.Base, t.terms.ACL = at.Full(at.Path)+"/"+kind, at.ACL()
	t.terms.Type, t.terms.Keys = kind, []string{"buckets"}
	t.turns.Base = t.terms.Base
	t.terms.First = func() (terms, []string) { return terms{newBuckets}, []string{t.writers(), t.buckets()} }
	t.terms.Check = func(n terms) error {
		if n.Buckets < 1 || n.Buckets > mostBuckets {
			return fmt.Errorf("%w: the node %s tells of %d buckets; use another path", errs.ErrMisuse, errs.ShowPath(at.Local(t.terms.Base)), n.Buckets)
		}
		return nil
	}
	return t
}

// writers and buckets are the directories below the base node.
func (t *Table) writers() string { return t.terms.Base + "/writers" }
func (t *Table) buckets() string { return t.terms.Base + "/keys" }

// bucketName is what the name of a bucket begins with, and gateName that of its gate.
const (
	bucketName = "b-"
	gateName   = "open-"
)

// place is where the entry of a key is.
type place struct{ bucket, entry string }

func (t *Table) place(key string) place {
	t.mu.Lock()
	n := numberOf(key, t.most)
	t.mu.Unlock()
	b := fmt.Sprintf("%s/%s%03d", t.buckets(), bucketName, n)
	return place{b, b + "/" + nameOf(key)}
}

// Need is what a call needs to know if the nodes of the table are not there.
type Need int

const (
	FromHere   Need = iota // what this server knows
	FromLeader             // what the leader knows
	ToExist                // the call makes them
)

// In runs f in the present session, and again in the next one if that ends. f is given whether there is such a table. If
// there is none, it is made first, if it has to be. The error is for the caller of op.
func (t *Table) In(ctx context.Context, op string, need Need, f func(ctx context.Context, e *zkconn.Epoch, there bool) error) error {
	return errs.Wrap(op, t.at.Path, t.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		there, err := t.find(ctx, e, need)
		if err != nil {
			return err
		}
		return f(ctx, e, there)
	}))
}

// Of is In for one key. It does not run f if there is no table: then no key is there.
func (t *Table) Of(ctx context.Context, op string, need Need, key string, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	return t.In(ctx, op, need, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if !there {
			return nil
		}
		if n := len(nameOf(key)); n > maxName {
			return fmt.Errorf("%w: the key takes %d bytes in the name of its node, and at most %d are taken", errs.ErrMisuse, n, maxName)
		}
		return f(ctx, e)
	})
}

// find finds out how many buckets there may be, when that is first needed.
func (t *Table) find(ctx context.Context, e *zkconn.Epoch, need Need) (there bool, err error) {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if known {
		return true, nil
	}
	var v record.Version[terms]
	if need == ToExist {
		v, err = t.terms.Read(ctx, e)
		there = err == nil
	} else if v, there, err = t.terms.Peek(ctx, e); err == nil && !there && need == FromLeader {
		v, there, err = t.terms.Ask(ctx, e)
	}
	if there {
		t.mu.Lock()
		t.known, t.most = true, v.T.Buckets
		t.mu.Unlock()
	}
	return there, err
}

// isBroken is the error when nodes are missing. The next call looks whether there is a table at all.
func (t *Table) isBroken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = false
	return errRemoved
}

// apply makes a change, which is applied once.
func (t *Table) apply(ctx context.Context, e *zkconn.Epoch, ops ...any) ([]zk.MultiResponse, error) {
	res, err := t.at.Apply(ctx, e, t.writers(), ops...)
	if err == zk.ErrNoNode { // not that of an operation: the directory of the writers is not there
		err = t.isBroken()
	}
	return res, err
}

// Store sets the value of a key, whatever there is.
func (t *Table) Store(ctx context.Context, e *zkconn.Epoch, key string, data []byte) error {
	p := t.place(key)
	return t.attempts(ctx, e, p.bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) error {
		// The check tells whether it is the bucket that is missing, or only the entry.
		_, err := t.do(ctx, e, pass,
			&zk.CheckVersionRequest{Path: p.bucket, Version: -1},
			&zk.SetDataRequest{Path: p.entry, Data: data, Version: -1})
		if !missing(err) {
			return err
		}
		made, err := t.create(ctx, e, pass, p, data, record.RefusedAt(err, 0, zk.ErrNoNode))
		if err == nil && !made { // another has made it meanwhile
			err = gate.ErrRefused
		}
		return err
	})
}

// missing reports whether a transaction was refused because a node is not there.
func missing(err error) bool {
	var refused *zkconn.TxnError
	return errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode)
}

// Create makes the entry of a key. It returns false if there is one.
func (t *Table) Create(ctx context.Context, e *zkconn.Epoch, key string, data []byte) (made bool, err error) {
	p := t.place(key)
	err = t.attempts(ctx, e, p.bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) (err error) {
		made, err = t.create(ctx, e, pass, p, data, false)
		return err
	})
	return made, err
}

// LoadOrCreate makes the entry of a key, or returns the one that there is.
func (t *Table) LoadOrCreate(ctx context.Context, e *zkconn.Epoch, key string, data []byte) (found Entry, err error) {
	p := t.place(key)
	err = t.attempts(ctx, e, p.bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) error {
		made, err := t.create(ctx, e, pass, p, data, false)
		if err != nil || made {
			return err
		}
		// The refusal came through this server, so it knows the entry, or its removal since.
		if found, err = t.get(ctx, e, p); err == nil && !found.There {
			err = gate.ErrRefused
		}
		return err
	})
	return found, err
}

// create makes the entry of a key. It returns false if there is one. With first it guesses that it is the first entry of
// its bucket, and makes the bucket and its gate.
func (t *Table) create(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass, p place, data []byte, first bool) (made bool, err error) {
	entry := &zk.CreateRequest{Path: p.entry, Data: data, Acl: t.at.ACL()}
	for pace, gated := (node.Pace{Free: 3}), pass.Closed(); ; {
		switch bucket := (&zk.CreateRequest{Path: p.bucket, Acl: t.at.ACL()}); {
		case !first:
			_, err = t.do(ctx, e, pass, &zk.CheckVersionRequest{Path: p.bucket, Version: -1}, entry)
		case gated:
			_, err = t.do(ctx, e, pass, bucket, entry)
		default:
			_, err = t.apply(ctx, e, bucket, entry, &zk.CreateRequest{Path: t.gate(p.bucket).Node, Acl: t.at.ACL()})
		}
		switch {
		case err == nil:
			return true, nil
		case record.RefusedAt(err, 1, zk.ErrNodeExists):
			return false, nil
		case record.RefusedAt(err, 2, zk.ErrNodeExists): // the gate of a bucket that somebody has removed
			gated = true
		case record.RefusedAt(err, 0, zk.ErrNoNode) && first:
			return false, t.isBroken() // the directory of the buckets is not there
		case record.RefusedAt(err, 0, zk.ErrNoNode), record.RefusedAt(err, 0, zk.ErrNodeExists):
			first = !first
		default:
			return false, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return false, err
		}
	}
}

// remove removes entries of one bucket, whatever their values are. If one is not there, none is removed.
func (t *Table) remove(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass, bucket string, entries ...string) error {
	var ops []any
	for _, path := range entries {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	res, err := t.do(ctx, e, pass, append(ops, &zk.SetDataRequest{Path: bucket, Version: -1})...)
	if err == nil {
		t.removed(e, bucket, res)
	}
	return err
}

// Remove removes the entry of a key, and reports whether there was one.
func (t *Table) Remove(ctx context.Context, e *zkconn.Epoch, key string) (removed bool, err error) {
	p := t.place(key)
	err = t.attempts(ctx, e, p.bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) error {
		return t.remove(ctx, e, pass, p.bucket, p.entry)
	})
	if missing(err) {
		return false, nil
	}
	return err == nil, err
}

// Entry is the state of a key.
type Entry struct {
	There   bool
	Data    []byte
	Node    string // the path of the node, as the session's user knows it
	version int32
}

// Get reads the entry of a key as this server knows it.
func (t *Table) Get(ctx context.Context, e *zkconn.Epoch, key string) (Entry, error) {
	return t.get(ctx, e, t.place(key))
}

func (t *Table) get(ctx context.Context, e *zkconn.Epoch, p place) (Entry, error) {
	data, stat, err := e.Get(ctx, p.entry)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Entry{}, nil
	case err != nil:
		return Entry{}, err
	}
	return Entry{true, data, t.at.Local(p.entry), stat.Version}, nil
}

// Room is how many bytes a request that changes the entry of a key takes at most, besides the value.
func (t *Table) Room(key string) int {
	p := t.place(key)
	const rest = 1024 // headers, versions, the writer's node with its data, and the name of the entry in the queue
	return 6*len(p.bucket) + len(p.entry) + 4*record.ACLSize(t.at.ACL()) + rest
}
