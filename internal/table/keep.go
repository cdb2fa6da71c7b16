package table

import (
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Keep sets the value, and has the entry go with this session. An entry that stays is replaced. It is a misuse if another session
// keeps the entry.
func (p *Place) Keep(data []byte) error {
	if err := p.t.kept.add(p.e, p.entry()); err != nil {
		return err
	}
	p.flags = zk.FlagEphemeral
	// A session of this client that is over keeps nothing, even if the servers have not ended it yet. It is taken from the list when
	// they have, so the list is older than what is read.
	own := p.t.at.Client().Past()
	other := int64(0)
	err := p.Change(false, func(found Entry) (Decision, error) {
		own, other = append(own, p.e.ID()), 0
		if found.There && p.passing(found) && !slices.Contains(own, found.Stat.EphemeralOwner) {
			other = found.Stat.EphemeralOwner
			return Decision{}, nil
		}
		return Decision{Do: Keep, Data: data}, nil
	})
	if err == nil && other != 0 {
		p.t.kept.drop([]string{p.entry()})
		err = errs.Misuse("session 0x%x keeps the key %s; use another key, or wait until that session has ended", uint64(other), p.name)
	}
	return err
}

// passing reports whether the end of another session removes the entry.
func (p *Place) passing(found Entry) bool {
	owner := found.Stat.EphemeralOwner
	return owner != 0 && owner != p.e.ID()
}

// mostKept bounds the paths of the entries that go with a session, in bytes. The transaction that ends the session has them all: see
// package writers for what becomes of servers where that is too long.
const mostKept = 256 << 10

// kept are the entries that may go with the session e.
type kept struct {
	mu    sync.Mutex
	e     *zkconn.Epoch
	paths map[string]struct{}
	bytes int
}

// add notes an entry, or returns an error if there are too many.
func (k *kept) add(e *zkconn.Epoch, path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.e != e {
		k.e, k.paths, k.bytes = e, map[string]struct{}{}, 0
	}
	if _, there := k.paths[path]; there {
		return nil
	}
	if k.bytes+len(path) > mostKept {
		return errs.Misuse("this session keeps %d keys of the map, and more could keep the servers from ending it; keep fewer, or use another session", len(k.paths))
	}
	k.paths[path] = struct{}{}
	k.bytes += len(path)
	return nil
}

// drop notes that entries were removed.
func (k *kept) drop(paths []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range paths {
		if _, there := k.paths[p]; there {
			delete(k.paths, p)
			k.bytes -= len(p)
		}
	}
}
