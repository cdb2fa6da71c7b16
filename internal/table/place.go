package table

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Place is where the entry of a key is, for one call in one ZooKeeper session.
type Place struct {
	t            *Table
	ctx          context.Context
	e            *zkconn.Epoch // changes if the call gets its turn in a later session
	life         string        // of the table
	bucket, name string        // the name is "" for many entries of one bucket
	pass         *gate.Pass    // of a call that changes something
	alone        bool          // the next attempt must not be made as long as other processes may make changes
	flags        int32         // of the node, when it is created
}

// Entry is the state of a key.
type Entry struct {
	There bool
	Data  []byte
	Node  string   // the path of the node, as the session's user knows it
	Stat  *zk.Stat // of the node; nil if there is none, or if the data were not read
}

// entry is the path of the node.
func (p *Place) entry() string { return p.bucket + "/" + p.name }

// Overhead is how many bytes a request that changes the entry takes at most, besides the value.
func (p *Place) Overhead() int {
	const rest = 1024 // headers, versions, the writer's node with its data, and the name of the entry in the queue
	return 6*len(p.bucket) + len(p.entry()) + 4*record.ACLSize(p.t.at.ACL()) + rest
}

// Get reads the entry as this server knows it.
func (p *Place) Get() (Entry, error) {
	data, stat, err := p.e.Get(p.ctx, p.entry())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return Entry{}, nil
	case err != nil:
		return Entry{}, err
	}
	return Entry{true, data, p.t.at.Local(p.entry()), stat}, nil
}

// begin begins a change. The caller must call p.pass.Leave in the end.
func (p *Place) begin() { p.pass = p.t.gate(p.bucket).Pass(p.ctx, p.e) }

// next reports whether there is to be another attempt: not if pass.Err, that of the last one, is another than gate.ErrRefused.
func (p *Place) next() bool {
	more := p.pass.Next(p.alone)
	p.e = p.pass.Epoch
	return more
}

// do makes an attempt, which is applied once, and only if the gate lets it.
func (p *Place) do(ops ...any) ([]zk.MultiResponse, error) {
	res, err := p.apply(p.pass.With(ops))
	return p.pass.Outcome(len(ops), res, err)
}

func (p *Place) apply(ops []any) ([]zk.MultiResponse, error) {
	res, err := p.t.at.Apply(p.ctx, p.e, record.WritersOf(p.t.terms.Base, p.life), ops...)
	if err == writers.ErrNoDir {
		err = p.t.gone(p.ctx, p.e, p.life)
	}
	return res, err
}

// Store sets the value, whatever there is.
func (p *Place) Store(data []byte) error {
	p.begin()
	defer p.pass.Leave()
	for p.next() {
		// The check shows whether the bucket is missing, or only the entry.
		_, err := p.do(
			&zk.CheckVersionRequest{Path: p.bucket, Version: -1},
			&zk.SetDataRequest{Path: p.entry(), Data: data, Version: -1})
		if missing(err) { // the bucket or the entry: of a missing gate Outcome says ErrRefused
			var made bool
			if made, err = p.create(data, record.RefusedAt(err, atBucket, zk.ErrNoNode)); err == nil && !made { // another has made it meanwhile
				err = gate.ErrRefused
			}
		}
		p.pass.Err = err
	}
	return p.pass.Err
}

// Create makes the entry. It returns false if there is one.
func (p *Place) Create(data []byte) (made bool, err error) {
	p.begin()
	defer p.pass.Leave()
	for p.next() {
		made, p.pass.Err = p.create(data, false)
	}
	return made, p.pass.Err
}

// LoadOrCreate makes the entry, or returns the one that there is.
func (p *Place) LoadOrCreate(data []byte) (found Entry, err error) {
	p.begin()
	defer p.pass.Leave()
	for p.next() {
		made, err := p.create(data, false)
		if err == nil && !made {
			// The refusal came through this server, so it knows the entry, or its removal since.
			if found, err = p.Get(); err == nil && !found.There {
				err = gate.ErrRefused
			}
		}
		p.pass.Err = err
	}
	return found, p.pass.Err
}

// The operations of the transactions that create an entry, by index.
const atBucket, atEntry, atGate = 0, 1, 2

// create makes the entry. It returns false if there is one. With first it guesses that it is the first entry of
// its bucket, and makes the bucket and its gate.
func (p *Place) create(data []byte, first bool) (made bool, err error) {
	t, acl := p.t, p.t.at.ACL()
	entry := &zk.CreateRequest{Path: p.entry(), Data: data, Acl: acl, Flags: p.flags}
	for pace, gateKnown := (node.Pace{Free: 3}), p.pass.Closed(); ; {
		switch bucket := (&zk.CreateRequest{Path: p.bucket, Acl: acl}); {
		case !first:
			_, err = p.do(&zk.CheckVersionRequest{Path: p.bucket, Version: -1}, entry)
		case gateKnown:
			_, err = p.do(bucket, entry)
		default: // the gate is made here, so there is none to check
			_, err = p.apply([]any{bucket, entry, &zk.CreateRequest{Path: t.gate(p.bucket).Node, Acl: acl}})
		}
		switch {
		case err == nil:
			return true, nil
		case record.RefusedAt(err, atEntry, zk.ErrNodeExists):
			return false, nil
		case record.RefusedAt(err, atGate, zk.ErrNodeExists): // the gate of a bucket that was removed externally
			gateKnown = true
		case record.RefusedAt(err, atBucket, zk.ErrNoNode) && first:
			return false, t.broken() // the directory of the buckets is not there
		case record.RefusedAt(err, atBucket, zk.ErrNoNode), record.RefusedAt(err, atBucket, zk.ErrNodeExists):
			first = !first
		default:
			return false, err
		}
		if err := pace.Rest(p.ctx, p.e); err != nil {
			return false, err
		}
	}
}

// remove removes entries of the bucket, whatever their values are. If one is not there, none is removed.
func (p *Place) remove(entries ...string) error {
	var ops []any
	for _, path := range entries {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	res, err := p.do(append(ops, &zk.SetDataRequest{Path: p.bucket, Version: -1})...)
	if err == nil {
		p.removed(res)
		p.t.kept.drop(entries)
	}
	return err
}

// removed notes the version that the bucket has after a removal, whose last operation writes to it.
func (p *Place) removed(res []zk.MultiResponse) {
	if n := len(res); n > 0 && res[n-1].Stat != nil {
		p.t.saw(p.e, p.life, p.bucket, res[n-1].Stat.Version)
	} else {
		p.t.forget(p.e, p.bucket)
	}
}

// Remove removes the entry, and reports whether there was one.
func (p *Place) Remove() (removed bool, err error) {
	p.begin()
	defer p.pass.Leave()
	for p.next() {
		p.pass.Err = p.remove(p.entry())
	}
	if missing(p.pass.Err) {
		return false, nil
	}
	return p.pass.Err == nil, p.pass.Err
}

// Decision is what a change does after it has read the entry.
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
	Keep // put it in a node of this session
)

// Change changes the entry depending on what it is. decide is given the entry, and may be called again. If it
// decides to do nothing, it was given what the entry was at an instant of the call. With sure, decide is never given an
// older entry, whatever it decides. The argument is in the package comment.
func (p *Place) Change(sure bool, decide func(Entry) (Decision, error)) error {
	var synced *zkconn.Epoch // the session in which what is read is not older than the call
	p.begin()
	defer p.pass.Leave()
	for p.next() {
		p.pass.Err = p.change(&synced, sure, decide)
	}
	return p.pass.Err
}

// change is one attempt of Change.
func (p *Place) change(synced **zkconn.Epoch, sure bool, decide func(Entry) (Decision, error)) error {
	for ; ; sure = true {
		if sure && *synced != p.e {
			if err := record.Synced(p.ctx, p.e, p.t.terms.Base); err != nil {
				return err
			}
			*synced = p.e
		}
		version, found, err := p.read()
		if err != nil {
			return err
		}
		var d Decision
		p.pass.While(func() { d, err = decide(found) })
		switch {
		case err != nil, d.Do == Nothing && *synced == p.e:
			return err
		case d.Do == Nothing:
			continue
		case found.There && (version == -1 || found.Stat.Version == -1 || p.passing(found)) && !p.pass.Closed():
			p.alone = true
			return gate.ErrRefused
		}
		if err = p.commit(found, version, d); errors.Is(err, gate.ErrRefused) {
			*synced = p.e
		}
		return err
	}
}

// read reads the entry, and before it the version of the bucket, unless that is known.
func (p *Place) read() (version int32, found Entry, err error) {
	version, known := p.t.seen(p.e, p.bucket)
	if !known {
		_, stat, err := p.e.Get(p.ctx, p.bucket)
		if errors.Is(err, zk.ErrNoNode) {
			return 0, Entry{}, nil
		}
		if err != nil {
			return 0, Entry{}, err
		}
		version = stat.Version
		p.t.saw(p.e, p.life, p.bucket, version)
	}
	found, err = p.Get()
	return version, found, err
}

// commit makes the change, if the entry is still the one that was found. version is that of its bucket.
func (p *Place) commit(found Entry, version int32, d Decision) error {
	if !found.There {
		made, err := p.create(d.Data, false)
		if err == nil && !made {
			err = gate.ErrRefused
		}
		return err
	}
	ops, removes := []any{
		&zk.DeleteRequest{Path: p.entry(), Version: found.Stat.Version},
		&zk.SetDataRequest{Path: p.bucket, Version: version},
	}, true
	switch {
	case d.Do == Put || d.Do == Keep && found.Stat.EphemeralOwner == p.e.ID():
		removes, ops = false, []any{
			&zk.CheckVersionRequest{Path: p.bucket, Version: version},
			&zk.SetDataRequest{Path: p.entry(), Data: d.Data, Version: found.Stat.Version},
		}
	case d.Do == Keep:
		ops = slices.Insert(ops, 1, any(&zk.CreateRequest{Path: p.entry(), Data: d.Data, Acl: p.t.at.ACL(), Flags: p.flags}))
	default:
		p.t.kept.drop([]string{p.entry()})
	}
	res, err := p.do(ops...)
	switch {
	case err == nil && removes:
		p.removed(res)
	case missing(err), errors.Is(err, zk.ErrBadVersion):
		p.t.forget(p.e, p.bucket)
		err = gate.ErrRefused
	}
	return err
}
