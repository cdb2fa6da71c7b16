package table

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Decision is what a change does after it has read the entry of a key.
type Decision struct {
	Do   Action
	Data []byte // to put
}

// Action is what a [Decision] is.
type Action int

const (
	Nothing Action = iota
	Put
	Drop
)

// Change changes the entry of a key depending on what it is. decide is given the entry, and may be asked again. If it
// decides to do nothing, it was given what the entry was at an instant of the call. With sure, decide is never given an
// older entry, whatever it decides. The argument is in the package comment.
func (t *Table) Change(ctx context.Context, e *zkconn.Epoch, key string, sure bool, decide func(Entry) (Decision, error)) error {
	p := t.place(key)
	var synced *zkconn.Epoch // the session in which what is read is not older than the call
	return t.attempts(ctx, e, p.bucket, func(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass) error {
		for ; ; sure = true {
			if sure && synced != e {
				if err := record.Synced(ctx, e, t.terms.Base); err != nil {
					return err
				}
				synced = e
			}
			version, found, err := t.read(ctx, e, p)
			if err != nil {
				return err
			}
			var d Decision
			pass.While(func() { d, err = decide(found) })
			switch {
			case err != nil, d.Do == Nothing && synced == e:
				return err
			case d.Do == Nothing:
				continue
			case found.There && (version == -1 || found.version == -1) && !pass.Closed():
				return errAlone
			}
			err = t.commit(ctx, e, pass, p, found, version, d)
			if errors.Is(err, gate.ErrRefused) {
				synced = e
			}
			return err
		}
	})
}

// read reads the entry of a key, and before it the version of the bucket, unless that is known.
func (t *Table) read(ctx context.Context, e *zkconn.Epoch, p place) (version int32, found Entry, err error) {
	version, known := t.seen(e, p.bucket)
	if !known {
		_, stat, err := e.Get(ctx, p.bucket)
		if errors.Is(err, zk.ErrNoNode) {
			return 0, Entry{}, nil
		}
		if err != nil {
			return 0, Entry{}, err
		}
		version = stat.Version
		t.saw(e, p.bucket, version)
	}
	found, err = t.get(ctx, e, p)
	return version, found, err
}

// commit makes the change, if the entry is still the one that was found. version is that of its bucket.
func (t *Table) commit(ctx context.Context, e *zkconn.Epoch, pass *gate.Pass, p place, found Entry, version int32, d Decision) error {
	if !found.There {
		made, err := t.create(ctx, e, pass, p, d.Data, false)
		if err == nil && !made {
			err = gate.ErrRefused
		}
		return err
	}
	var ops []any
	if d.Do == Put {
		ops = []any{
			&zk.CheckVersionRequest{Path: p.bucket, Version: version},
			&zk.SetDataRequest{Path: p.entry, Data: d.Data, Version: found.version},
		}
	} else {
		ops = []any{
			&zk.DeleteRequest{Path: p.entry, Version: found.version},
			&zk.SetDataRequest{Path: p.bucket, Version: version},
		}
	}
	res, err := t.do(ctx, e, pass, ops...)
	switch {
	case err == nil && d.Do == Drop:
		t.removed(e, p.bucket, res)
	case missing(err), errors.Is(err, zk.ErrBadVersion):
		t.forget(e, p.bucket)
		err = gate.ErrRefused
	}
	return err
}

// seen is the version of a bucket that was seen last in a session.
func (t *Table) seen(e *zkconn.Epoch, bucket string) (version int32, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.e != e {
		return 0, false
	}
	version, known = t.removals[bucket]
	return version, known
}

// saw notes the version of a bucket. The versions that were seen in an earlier session prove nothing in this one, which may
// be with a server that lags behind.
func (t *Table) saw(e *zkconn.Epoch, bucket string, version int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.e != e {
		t.e, t.removals = e, map[string]int32{}
	}
	t.removals[bucket] = version
}

func (t *Table) forget(e *zkconn.Epoch, bucket string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.e == e {
		delete(t.removals, bucket)
	}
}

// removed notes the version that a bucket has after a removal, whose last operation writes to it.
func (t *Table) removed(e *zkconn.Epoch, bucket string, res []zk.MultiResponse) {
	if n := len(res); n > 0 && res[n-1].Stat != nil {
		t.saw(e, bucket, res[n-1].Stat.Version)
	} else {
		t.forget(e, bucket)
	}
}
