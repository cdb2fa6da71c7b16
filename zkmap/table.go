package zkmap

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// table is what maps and sets have in common. Its keys are text, and its values are bytes.
type table struct {
	path   string
	at     *session.Access
	misuse error
	terms  record.Terms[terms]

	mu   sync.Mutex
	most uint32 // how many buckets there may be; 0 until the terms are known
	// The versions of buckets that were seen in the session e: see change.go.
	e        *zkconn.Epoch
	removals map[string]int32
}

// terms is the data of the base node. Below the base node there are
//
//	writers                        the writers, see record.Writers. They are not below keys, so watchers do not hear of them
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
var errRemoved = fmt.Errorf("%w: somebody has removed nodes of the map", zksync.ErrBroken)

func newTable(s *zksync.Session, path, kind string, opts []zksync.Option) *table {
	t := &table{path: path, at: session.NewValueAccess((*session.Session)(s), path, opts)}
	if t.misuse = t.at.Misuse(); t.misuse != nil {
		return t
	}
	t.terms.Base, t.terms.ACL = t.at.Full(path)+"/"+kind, t.at.ACL()
	t.terms.Type, t.terms.Keys = kind, []string{"buckets"}
	t.terms.First = func() (terms, []string) { return terms{newBuckets}, []string{t.writers(), t.buckets()} }
	t.terms.Check = func(n terms, ours bool) error {
		if !ours || n.Buckets < 1 || n.Buckets > mostBuckets {
			return fmt.Errorf("%w: the data of the node %s is not that of a %s; use another path",
				zksync.ErrMisuse, errs.ShowPath(t.at.Local(t.terms.Base)), kind)
		}
		return nil
	}
	return t
}

// writers and buckets are the directories below the base node.
func (t *table) writers() string { return t.terms.Base + "/writers" }
func (t *table) buckets() string { return t.terms.Base + "/keys" }

// place is where the entry of a key is.
type place struct{ bucket, entry string }

func (t *table) place(key string) place {
	t.mu.Lock()
	n := numberOf(key, t.most)
	t.mu.Unlock()
	b := fmt.Sprintf("%s/b-%03d", t.buckets(), n)
	return place{b, b + "/" + nameOf(key)}
}

// in runs f in the present session, and again in the next one if that ends. f is given whether there is such a map. If there
// is none, it is made first, if it has to be.
func (t *table) in(ctx context.Context, op string, need need, f func(ctx context.Context, e *zkconn.Epoch, there bool) error) error {
	if t.misuse != nil {
		return errs.Wrap(op, t.path, t.misuse)
	}
	return errs.Wrap(op, t.path, t.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		there, err := t.find(ctx, e, need)
		if err != nil {
			return err
		}
		return f(ctx, e, there)
	}))
}

// need is what a call needs to know if the nodes of the map are not there.
type need int

const (
	fromHere   need = iota // what this server knows
	fromLeader             // what the leader knows
	toExist                // the call makes them
)

// find finds out how many buckets there may be, when that is first needed.
func (t *table) find(ctx context.Context, e *zkconn.Epoch, need need) (there bool, err error) {
	t.mu.Lock()
	known := t.most > 0
	t.mu.Unlock()
	if known {
		return true, nil
	}
	v, there, err := t.terms.Peek(ctx, e)
	switch {
	case err != nil || there || need == fromHere:
	case need == toExist:
		v, err = t.terms.Make(ctx, e)
		there = err == nil
	default:
		v, there, err = t.terms.Ask(ctx, e)
	}
	if there {
		t.mu.Lock()
		t.most = v.T.Buckets
		t.mu.Unlock()
	}
	return there, err
}

// apply makes a change, which is applied once.
func (t *table) apply(ctx context.Context, e *zkconn.Epoch, ops ...any) ([]zk.MultiResponse, error) {
	res, err := t.at.Apply(ctx, e, t.writers(), ops...)
	if err == zk.ErrNoNode { // not that of an operation: the directory of the writers is not there
		t.mu.Lock()
		t.most = 0 // the next call looks, and makes the map anew
		t.mu.Unlock()
		err = errRemoved
	}
	return res, err
}

// store sets the value of a key, whatever there is.
func (t *table) store(ctx context.Context, e *zkconn.Epoch, key string, data []byte) error {
	p := t.place(key)
	for pace := (node.Pace{Free: 1}); ; {
		// The check tells whether it is the bucket that is missing, or only the entry.
		_, err := t.apply(ctx, e,
			&zk.CheckVersionRequest{Path: p.bucket, Version: -1},
			&zk.SetDataRequest{Path: p.entry, Data: data, Version: -1})
		if !missing(err) {
			return err
		}
		made, err := t.create(ctx, e, p, data, record.RefusedAt(err, 0, zk.ErrNoNode))
		if made || err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil { // another has made it meanwhile
			return err
		}
	}
}

// missing reports whether a transaction was refused because a node is not there.
func missing(err error) bool {
	var refused *zkconn.TxnError
	return errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode)
}

// create makes the entry of a key. It returns false if there is one. With first it guesses that it is the first entry of
// its bucket.
func (t *table) create(ctx context.Context, e *zkconn.Epoch, p place, data []byte, first bool) (made bool, err error) {
	for pace := (node.Pace{Free: 2}); ; {
		bucket := any(&zk.CheckVersionRequest{Path: p.bucket, Version: -1})
		if first {
			bucket = &zk.CreateRequest{Path: p.bucket, Acl: t.at.ACL()}
		}
		_, err := t.apply(ctx, e, bucket, &zk.CreateRequest{Path: p.entry, Data: data, Acl: t.at.ACL()})
		switch {
		case err == nil:
			return true, nil
		case record.RefusedAt(err, 1, zk.ErrNodeExists):
			return false, nil
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

// remove removes entries of one bucket, whatever their values are. If one is not there, none is removed, and the
// error has its index.
func (t *table) remove(ctx context.Context, e *zkconn.Epoch, bucket string, entries ...string) error {
	var ops []any
	for _, path := range entries {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	res, err := t.apply(ctx, e, append(ops, &zk.SetDataRequest{Path: bucket, Version: -1})...)
	if err == nil {
		t.removed(e, bucket, res)
	}
	return err
}

// removeOne removes the entry of a key, and reports whether there was one.
func (t *table) removeOne(ctx context.Context, e *zkconn.Epoch, key string) (removed bool, err error) {
	p := t.place(key)
	err = t.remove(ctx, e, p.bucket, p.entry)
	if missing(err) {
		return false, nil
	}
	return err == nil, err
}

// entry is the state of a key. Without a node its value is nil.
type entry struct {
	there   bool
	data    []byte
	version int32
	path    string
}

// get reads the entry of a key as this server knows it.
func (t *table) get(ctx context.Context, e *zkconn.Epoch, p place) (entry, error) {
	data, stat, err := e.Get(ctx, p.entry)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return entry{}, nil
	case err != nil:
		return entry{}, err
	}
	return entry{true, data, stat.Version, t.at.Local(p.entry)}, nil
}
