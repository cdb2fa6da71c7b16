package table

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// places are where the entries of the keys are, in this order.
func (t *Table) places(ctx context.Context, e *zkconn.Epoch, keys []Key) []*Place {
	all := make([]*Place, len(keys))
	for i, k := range keys {
		all[i] = t.place(ctx, e, k)
	}
	return all
}

// refused is the error of the first key that cannot be one.
func refused(keys []Key) error {
	for _, k := range keys {
		if err := k.err(); err != nil {
			return err
		}
	}
	return nil
}

// LoadMany reads the entries of the keys, in this order, each as this server knows it.
func (t *Table) LoadMany(ctx context.Context, op string, keys []Key) (all []Entry, err error) {
	if err := refused(keys); err != nil && t.at.Misuse() == nil {
		return nil, t.at.Named(op, err)
	}
	err = t.run(ctx, op, FromHere, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if all = make([]Entry, len(keys)); !there {
			return nil
		}
		paths := make([]string, len(keys))
		for i, p := range t.places(ctx, e, keys) {
			paths[i] = p.entry()
		}
		return e.GetMany(ctx, paths, func(i int, c zkconn.Content) error {
			all[i] = Entry{true, c.Data, t.at.Local(paths[i]), c.Stat}
			return nil
		})
	})
	return all, err
}

// Storing is a call that sets the values of many keys.
type Storing struct {
	Keys   []Key
	Encode func(i int, p *Place) ([]byte, error) // encodes the value of a key
	Stored []bool                                // the keys that are stored
	Doubt  []bool                                // the keys of which an error leaves it unknown

	t    *Table
	data [][]byte
}

// StoreMany sets the values of many keys, each on its own. It notes in s which keys are stored, also with an error.
func (t *Table) StoreMany(ctx context.Context, op string, s *Storing) error {
	s.t, s.Stored, s.Doubt = t, make([]bool, len(s.Keys)), make([]bool, len(s.Keys))
	if err := refused(s.Keys); err != nil && t.at.Misuse() == nil {
		return t.at.Named(op, err)
	}
	need := ToExist
	if len(s.Keys) == 0 {
		need = FromHere // nothing is to be stored, so no table is made for it
	}
	return t.run(ctx, op, need, func(ctx context.Context, e *zkconn.Epoch, _ bool) error {
		places := t.places(ctx, e, s.Keys)
		if err := s.encode(places); err != nil {
			return err
		}
		rest := make([]int, 0, len(places))
		for i := range places {
			if !s.Stored[i] { // in an earlier session
				rest = append(rest, i)
			}
		}
		// Those of one bucket have one gate to pass.
		slices.SortFunc(rest, func(i, j int) int { return strings.Compare(places[i].entry(), places[j].entry()) })
		for len(rest) > 0 {
			n := s.fit(places, rest)
			if err := s.put(ctx, e, places, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
}

// encode encodes all values before the first is stored, unless they are encoded.
func (s *Storing) encode(places []*Place) (err error) {
	if s.data != nil {
		return nil
	}
	data := make([][]byte, len(places))
	for i, p := range places {
		if data[i], err = s.Encode(i, p); err != nil {
			return err
		}
	}
	s.data = data
	return nil
}

// What one transaction of StoreMany stores, at most. It leaves room in a request (a megabyte), also for what servers add to it.
const (
	mostStored      = 1000
	mostStoredBytes = 512 << 10
)

// fit is how many of the keys go into one transaction.
func (s *Storing) fit(places []*Place, some []int) int {
	const others = 64 // headers, flags, lengths
	acl, bytes := record.ACLSize(s.t.at.ACL()), 0
	for n, i := range some {
		// The bucket and its gate may have to be created, too.
		p := places[i]
		bytes += len(s.data[i]) + len(p.entry()) + 2*len(p.bucket) + 3*(acl+others)
		if n > 0 && (n == mostStored || bytes > mostStoredBytes) {
			return n
		}
	}
	return len(some)
}

// put stores some keys in one transaction. If that is refused, because keys or buckets have come or gone meanwhile, or others have
// closed the gate of a bucket, each half goes on its own, and at last a single key as [Place.Store] has it. So a key that others
// contend for delays few others, and each gets its turn.
func (s *Storing) put(ctx context.Context, e *zkconn.Epoch, places []*Place, some []int) error {
	if len(some) == 1 {
		err := places[some[0]].Store(s.data[some[0]])
		s.note(some, err)
		return err
	}
	ops, err := s.ops(ctx, e, places, some)
	if err != nil {
		return err
	}
	_, err = places[some[0]].apply(ops)
	switch {
	case record.Conflict(err), errors.Is(err, errs.ErrMisuse): // or the servers take no request that is as long
		half := len(some) / 2
		if err := s.put(ctx, e, places, some[:half]); err != nil {
			return err
		}
		return s.put(ctx, e, places, some[half:])
	}
	s.note(some, err)
	return err
}

// note notes what became of some keys.
func (s *Storing) note(some []int, err error) {
	for _, i := range some {
		s.Stored[i], s.Doubt[i] = err == nil, errs.Ambiguous(err)
	}
}

// ops are the operations that store some keys. It reads which of them are there, and which buckets.
func (s *Storing) ops(ctx context.Context, e *zkconn.Epoch, places []*Place, some []int) (ops []any, err error) {
	var paths []string
	bucket := ""
	for _, i := range some {
		if p := places[i]; p.bucket != bucket {
			bucket = p.bucket
			paths = append(paths, bucket)
		}
		paths = append(paths, places[i].entry())
	}
	there := make(map[string]bool, len(paths))
	err = e.GetMany(ctx, paths, func(i int, _ zkconn.Content) error { there[paths[i]] = true; return nil })
	if err != nil {
		return nil, err
	}
	acl := s.t.at.ACL()
	bucket = ""
	for _, i := range some {
		p := places[i]
		gate := s.t.gate(p.bucket).Node
		switch {
		case p.bucket == bucket:
		case there[p.bucket]:
			ops = append(ops, &zk.CheckVersionRequest{Path: gate, Version: -1})
		default:
			ops = append(ops, &zk.CreateRequest{Path: p.bucket, Acl: acl}, &zk.CreateRequest{Path: gate, Acl: acl})
		}
		if bucket = p.bucket; there[p.entry()] {
			ops = append(ops, &zk.SetDataRequest{Path: p.entry(), Data: s.data[i], Version: -1})
		} else {
			ops = append(ops, &zk.CreateRequest{Path: p.entry(), Data: s.data[i], Acl: acl})
		}
	}
	return ops, nil
}
