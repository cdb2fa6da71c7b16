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
	life    string          // of the table that is gone through
	buckets []string        // that are still to come
	done    map[string]bool // the names in the first of these that were dealt with
}

// run runs f for each bucket, with the names of its entries that were not dealt with.
//
// A key that is there all the time is found: its bucket was made before, so it is in the list of buckets; and so the key is
// in the list of its bucket.
func (s *scan) run(ctx context.Context, op string, f func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error) error {
	return s.t.run(ctx, op, FromLeader, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if !there {
			return nil
		}
		if err := s.list(ctx, e); err != nil {
			return err
		}
		for len(s.buckets) > 0 {
			names, _, err := e.Children(ctx, s.buckets[0])
			if err != nil && !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			if s.done == nil {
				s.done = map[string]bool{}
			}
			names = slices.DeleteFunc(names, func(n string) bool { return s.done[n] })
			if err := f(ctx, e, s.buckets[0], names); err != nil {
				if err == errAgain {
					s.listed, s.done = false, nil
				}
				return err
			}
			s.buckets, s.done = s.buckets[1:], nil
		}
		return nil
	})
}

// list has the server catch up with the leader, and lists the buckets, unless they were listed in an earlier session.
func (s *scan) list(ctx context.Context, e *zkconn.Epoch) error {
	if err := record.Synced(ctx, e, s.t.terms.Base); err != nil || s.listed {
		return err
	}
	s.life = s.t.place(ctx, e, Key{}).life
	names, _, err := e.Children(ctx, s.t.buckets())
	if errors.Is(err, zk.ErrNoNode) {
		return s.t.broken()
	}
	if err != nil {
		return err
	}
	s.buckets, s.listed = under(s.t.buckets(), names), true
	return nil
}

// ErrStop ends [Table.Each] early.
var ErrStop = errors.New("no more is wanted")

// Each gives the entries of all buckets to f, with their names. With data false their data is not read.
func (t *Table) Each(ctx context.Context, op string, data bool, f func(key string, found Entry) error) error {
	s, stopped := &scan{t: t}, false
	err := s.run(ctx, op, func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error {
		give := func(i int, c zkconn.Content) error {
			s.done[names[i]] = true
			path := t.at.Local(bucket + "/" + names[i])
			key, ok := keyOf(names[i])
			if !ok {
				return NotAKey(path)
			}
			err := f(key, Entry{true, c.Data, path, c.Stat})
			stopped = err == ErrStop
			return err
		}
		if data {
			return e.GetEach(ctx, under(bucket, names), give)
		}
		for i := range names {
			if err := give(i, zkconn.Content{}); err != nil {
				return err
			}
		}
		return nil
	})
	if stopped { // whatever ended at the same time
		return nil
	}
	return err
}

// NotAKey is the error of a node in a bucket whose name is not the name of an entry.
func NotAKey(path string) error {
	return errors.New("the node " + errs.ShowPath(path) + " belongs to no key")
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
	err = t.run(ctx, "len", FromLeader, func(ctx context.Context, e *zkconn.Epoch, there bool) error {
		if n = 0; !there {
			return nil
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
	return s.run(ctx, "clear", func(ctx context.Context, e *zkconn.Epoch, bucket string, names []string) error {
		for paths := under(bucket, names); len(paths) > 0; {
			n := chunk(paths)
			if err := (&Place{t: t, ctx: ctx, e: e, life: s.life, bucket: bucket}).clear(paths[:n]); err != nil {
				return err
			}
			paths = paths[n:]
		}
		return nil
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

// clear removes those of the entries that are there.
func (p *Place) clear(paths []string) error {
	p.begin()
	defer p.pass.Leave()
	for len(paths) > 0 && p.next() {
		err := p.remove(paths...)
		if missing(err) {
			// One of them was removed meanwhile, and perhaps many.
			var names []string
			if names, _, err = p.e.Children(p.ctx, p.bucket); err == nil || errors.Is(err, zk.ErrNoNode) { // without a bucket there is no entry
				there := make(map[string]bool, len(names))
				for _, path := range under(p.bucket, names) {
					there[path] = true
				}
				paths, err = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !there[path] }), gate.ErrRefused
			}
		}
		if p.pass.Err = err; len(paths) == 0 {
			return nil
		}
	}
	return p.pass.Err
}
