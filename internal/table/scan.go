package table

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// scan goes through all buckets once. If a session ends on the way, it goes on in the next one.
type scan struct {
	t       *Table
	listed  bool
	buckets []string        // that are still to come
	told    map[string]bool // the names of the first of these that were dealt with
}

// in runs f for each bucket, with the names of its entries that were not dealt with.
//
// A key that is there all the time is found: its bucket was made before, so it is in the list of buckets; and so the key is
// in the list of its bucket.
func (s *scan) in(ctx context.Context, e *zkconn.Epoch, f func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error) error {
	if err := record.Synced(ctx, e, s.t.terms.Base); err != nil {
		return err
	}
	if err := s.list(ctx, e); err != nil {
		return err
	}
	for len(s.buckets) > 0 {
		names, _, err := e.Children(ctx, s.buckets[0])
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		left := names[:0]
		for _, n := range names {
			if !s.told[n] {
				left = append(left, n)
			}
		}
		if err := f(ctx, e, s.buckets[0], left); err != nil {
			return err
		}
		s.buckets, s.told = s.buckets[1:], nil
	}
	return nil
}

// list lists the buckets, unless they were listed in an earlier session.
func (s *scan) list(ctx context.Context, e *zkconn.Epoch) error {
	if s.listed {
		return nil
	}
	names, _, err := e.Children(ctx, s.t.buckets())
	if errors.Is(err, zk.ErrNoNode) {
		return s.t.isBroken()
	}
	if err != nil {
		return err
	}
	s.buckets, s.listed = under(s.t.buckets(), names), true
	return nil
}

// done notes that an entry of the present bucket was dealt with.
func (s *scan) done(name string) {
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[name] = true
}

// ErrStop ends [Table.Each] early.
var ErrStop = errors.New("no more is wanted")

// Each gives the entries of all buckets to f, with their names. With data false their data is not read.
func (t *Table) Each(ctx context.Context, op string, data bool, f func(key string, found Entry) error) error {
	s, stopped := &scan{t: t}, false
	err := t.In(ctx, op, FromLeader, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if !there {
			return nil
		}
		return s.in(ctx, e, func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error {
			tell := func(i int, c zkconn.Content) error {
				s.done(names[i])
				path := t.at.Local(bucket + "/" + names[i])
				key, ok := keyOf(names[i])
				if !ok {
					return NotAKey(path)
				}
				err := f(key, Entry{There: true, Data: c.Data, Node: path})
				stopped = err == ErrStop
				return err
			}
			if data {
				return e.GetEach(ctx, under(bucket, names), tell)
			}
			for i := range names {
				if err := tell(i, zkconn.Content{}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if stopped { // whatever ended at the same time
		return nil
	}
	return err
}

// NotAKey is the error of a node in a bucket whose name is not that of an entry.
func NotAKey(path string) error {
	return errors.New("the node " + errs.ShowPath(path) + " is not that of a key")
}

// under are the paths of the children of a directory.
func under(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = dir + "/" + n
	}
	return paths
}

// Len is the number of entries.
func (t *Table) Len(ctx context.Context) (n int, err error) {
	err = t.In(ctx, "len", FromLeader, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if n = 0; !there {
			return nil
		}
		if err := record.Synced(ctx, e, t.terms.Base); err != nil {
			return err
		}
		s := &scan{t: t}
		if err := s.list(ctx, e); err != nil {
			return err
		}
		return e.GetEach(ctx, s.buckets, func(_ int, c zkconn.Content) error { n += int(c.Stat.NumChildren); return nil })
	})
	return n, err
}

// What one transaction of Clear removes, at most. It leaves room in a request (a megabyte).
const (
	mostCleared      = 500
	mostClearedBytes = 256 << 10
)

// Clear removes all entries that are there when it begins, bucket by bucket.
func (t *Table) Clear(ctx context.Context) error {
	s := &scan{t: t}
	return t.In(ctx, "clear", FromLeader, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if !there {
			return nil
		}
		return s.in(ctx, e, func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error {
			for paths := under(bucket, names); len(paths) > 0; {
				n := chunk(paths)
				if err := t.clearThese(ctx, e, bucket, paths[:n]); err != nil {
					return err
				}
				paths = paths[n:]
			}
			return nil
		})
	})
}

// chunk is how many of the paths go into one transaction.
func chunk(paths []string) int {
	bytes := 0
	for i, p := range paths {
		if bytes += len(p); i > 0 && (i == mostCleared || bytes > mostClearedBytes) {
			return i
		}
	}
	return len(paths)
}

// clearThese removes those of the entries that are there.
func (t *Table) clearThese(ctx context.Context, e *zkconn.Epoch, bucket string, paths []string) error {
	return t.attempts(ctx, e, bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) error {
		err := t.remove(ctx, e, pass, bucket, paths...)
		if !missing(err) {
			return err
		}
		// Somebody else has removed one of them, and perhaps many.
		names, _, err := e.Children(ctx, bucket)
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // without a bucket there is no entry
			return err
		}
		there := make(map[string]bool, len(names))
		for _, n := range names {
			there[bucket+"/"+n] = true
		}
		if paths = slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !there[p] }); len(paths) == 0 {
			return nil
		}
		return gate.ErrRefused
	})
}
