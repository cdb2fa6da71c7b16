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
//   - If the bucket still has it at the transaction, no entry of the bucket was removed since. So the entry that was read is
//     there, and its version says whether it has other data.
//   - If there was no entry, the transaction creates one. The servers refuse that if there is one by then.
//
// If the table is destroyed, the versions of the next one begin again. So a change is made by a writer of the life that was read before: see
// [record.WritersOf].
//
// The end of a session removes its ephemeral entries, and writes to no bucket. While the session of the change is the owner, that does
// not matter: its end is the end of the change, too. Of an entry of another session the gate is closed before the reads. Then
// no entry of the bucket is created between the read and the transaction, so the entry is the one that was read, or gone.
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
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/layout"
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

	mu    sync.Mutex
	known bool   // whether there is a table
	most  uint32 // how many buckets there may be
	life  string // of the table, which it had before anything else of it was read: see [record.WritersOf]
	// Every bucket has a gate, so many changes of one key do not delay those of keys in other buckets. All gates have one queue.
	turns *queue.Queue
	gates map[string]*gate.Gate // by bucket
	kept  kept
	// The versions of buckets that were seen in the session e. Those of an earlier session prove nothing in this one, whose
	// server may lag behind.
	e        *zkconn.Epoch
	versions map[string]int32 // by bucket: each removal in it writes to it
}

// terms is the data of the base node. Below the base node there are
//
//	writers                        the writers, see package writers. They are not below keys, so watchers do not hear of them
//	queue                          where changes queue that were refused several times
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

// New names the table of a type (see package layout) at the path of at. It does no I/O.
func New(at *session.Access, kind string) *Table {
	t := &Table{at: at, gates: map[string]*gate.Gate{}}
	if at.Misuse() != nil {
		return t
	}
	t.turns = at.Queue("/"+kind+"/queue", queue.KindLock)
	t.terms.Base, t.terms.ACL = at.Full(at.Path)+"/"+kind, at.ACL()
	t.terms.Type, t.terms.Keys = kind, []string{"buckets"}
	t.turns.Base, t.terms.Lives = t.terms.Base, true
	t.terms.First = func() (terms, []string) {
		return terms{newBuckets}, []string{record.WritersOf(t.terms.Base, ""), t.buckets()}
	}
	t.terms.Check = func(n terms) error {
		if n.Buckets < 1 || n.Buckets > mostBuckets {
			return errs.Misuse("the node %s says %d buckets; use another path", errs.ShowPath(at.Local(t.terms.Base)), n.Buckets)
		}
		return nil
	}
	return t
}

// buckets is the directory of the buckets.
func (t *Table) buckets() string { return t.terms.Base + "/keys" }

// Buckets is the directory of the buckets, on the servers.
func (t *Table) Buckets() string { return t.buckets() }

// bucketName is what the name of a bucket begins with, and gateName that of its gate.
const (
	bucketName = "b-"
	gateName   = "open-"
)

// Need says who must know that there is no table, or that there is to be one.
type Need int

const (
	FromHere   Need = iota // this server
	FromLeader             // the leader
	ToExist                // nobody: the call makes the table
)

// run is Access.Run for an f that is given whether there is such a table. If there is none, it is made first, if need says so.
func (t *Table) run(ctx context.Context, op string, need Need, f func(ctx context.Context, e *zkconn.Epoch, there bool) error) error {
	return t.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 2}); ; {
			there, err := t.find(ctx, e, need)
			if err == nil {
				err = f(ctx, e, there)
			}
			if err != errAgain {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// Key is a key as text, or the error of its encoding.
type Key struct {
	Text string
	Err  error
}

// err is the error of a key that cannot be encoded, or whose node would have too long a name.
func (k Key) err() error {
	if n := len(nameOf(k.Text)); n > maxName && k.Err == nil {
		return errs.Misuse("the key takes %d bytes in the name of its node, and at most %d are allowed", n, maxName)
	}
	return k.Err
}

// RunAt runs f for the entry of a key, in the present session, and again in the next one if that ends. It does not run f if
// there is no table: then no key is there. The error is for the caller of op.
func (t *Table) RunAt(ctx context.Context, op string, need Need, key Key, f func(p *Place) error) error {
	if err := key.err(); err != nil && t.at.Misuse() == nil {
		return t.at.Named(op, err)
	}
	// This is Table.run, written out: a closure would be one more on the way of each call.
	return t.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		for pace := (node.Pace{Free: 2}); ; {
			there, err := t.find(ctx, e, need)
			if err == nil && there {
				err = f(t.place(ctx, e, key))
			}
			if err != errAgain {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

// find finds out how many buckets there may be, when that is first needed. With ToExist it makes the table, if there is none.
func (t *Table) find(ctx context.Context, e *zkconn.Epoch, need Need) (there bool, err error) {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if known {
		return true, nil
	}
	var v record.Version[terms]
	if need == ToExist {
		v, err = t.terms.ReadOrMake(ctx, e)
		there = err == nil
	} else if v, there, err = t.terms.Peek(ctx, e); err == nil && !there && need == FromLeader {
		v, there, err = t.terms.Ask(ctx, e)
	}
	if there {
		t.mu.Lock()
		t.known, t.most, t.life = true, v.T.Buckets, v.Life
		t.mu.Unlock()
	}
	return there, err
}

// errAgain means that the table may be another one than the one that was found: the call looks again.
var errAgain = errors.New("look again")

// again has the next call look whether there is a table, and returns errAgain.
func (t *Table) again() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = false
	clear(t.versions)
	return errAgain
}

// gone is called when there is no directory for the writers of a life. The error is errAgain if there is another table since.
func (t *Table) gone(ctx context.Context, e *zkconn.Epoch, life string) error {
	v, there, err := t.terms.Ask(ctx, e)
	switch {
	case err != nil:
		return err
	case !there || v.Life == life:
		return t.broken()
	}
	return t.again()
}

// broken returns the error of a table that has lost nodes which no change deletes. The next call looks whether
// there is a table at all.
func (t *Table) broken() error {
	_ = t.again()
	return errs.Broken("the "+layout.Word(t.terms.Type), "it was destroyed, or nodes of it were removed externally; the next change makes it again, if Destroy has removed the rest")
}

// place is where the entry of a key is, in the table that was found last.
func (t *Table) place(ctx context.Context, e *zkconn.Epoch, key Key) *Place {
	t.mu.Lock()
	defer t.mu.Unlock()
	bucket := fmt.Sprintf("%s/%s%03d", t.buckets(), bucketName, numberOf(key.Text, t.most))
	return &Place{t: t, ctx: ctx, e: e, life: t.life, bucket: bucket, name: nameOf(key.Text)}
}

// gate is the gate of a bucket.
func (t *Table) gate(bucket string) *gate.Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[bucket]
	if g == nil {
		name := gateName + strings.TrimPrefix(bucket, t.buckets()+"/"+bucketName)
		g = &gate.Gate{Node: t.terms.Base + "/" + name, ACL: t.at.ACL(), Line: t.turns}
		t.gates[bucket] = g
	}
	return g
}

// missing reports whether a transaction was refused because a node is not there.
func missing(err error) bool {
	var refused *zkconn.TxnError
	return errors.As(err, &refused) && errors.Is(err, zk.ErrNoNode)
}

// seen is the version of a bucket that was seen last in a session.
func (t *Table) seen(e *zkconn.Epoch, bucket string) (version int32, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.e != e {
		return 0, false
	}
	version, known = t.versions[bucket]
	return version, known
}

// saw notes the version of a bucket.
func (t *Table) saw(e *zkconn.Epoch, life, bucket string, version int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life != life {
		return // it may be the version in a table that was destroyed since
	}
	if t.e != e {
		t.e, t.versions = e, map[string]int32{}
	}
	t.versions[bucket] = version
}

func (t *Table) forget(e *zkconn.Epoch, bucket string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.e == e {
		delete(t.versions, bucket)
	}
}
