package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

const otherDir = "/locks/b"

var bothLocks = map[string]string{lockDir: "", otherDir: ""}

// both names two locks as one.
func both(s *zksync.Session, dirs ...string) *zksync.Multi {
	var ms []*zksync.Mutex
	for _, d := range dirs {
		ms = append(ms, zksync.NewMutex(s, d))
	}
	return zksync.MultiLock(ms...)
}

func useMulti(t testing.TB, s *zksync.Session) {
	ls, err := both(s, otherDir, lockDir).TryLockContext(context.Background())
	require.NoError(t, err)
	require.True(t, ls.Valid())
	require.NoError(t, ls.Unlock())
}

// many is get for what gives several leases.
func (k *kin) many(c *client, party string, wait time.Duration, f func(context.Context) (zksync.Leases, error), proper ...error) (zksync.Leases, []*stake) {
	var ls zksync.Leases
	var held []*stake
	_ = k.call(c, party, wait, func(ctx context.Context) (err error) {
		ls, err = f(ctx)
		for _, l := range ls {
			held = append(held, k.holds(party, k.dirOf(l), l))
		}
		return err
	}, append(proper, zksync.ErrLost)...)
	return ls, held
}

// dirOf is the queue of a lease.
func (k *kin) dirOf(l *zksync.Lease) string {
	for dir := range k.lines {
		if len(l.Node()) > len(dir) && l.Node()[:len(dir)+1] == dir+"/" {
			return dir
		}
	}
	return ""
}

// part gives several leases back.
func (k *kin) part(ls zksync.Leases, held []*stake) {
	if len(ls) == 0 {
		return
	}
	for _, s := range held[1:] {
		k.kmu.Lock()
		s.ended = time.Now()
		k.kmu.Unlock()
	}
	began := time.Now()
	k.lets(held[0], func() error { return nil })
	_ = ls.Unlock()
	if took := time.Since(began); took > time.Duration(len(ls))*(time.Second+slack) {
		k.wrong("%s took %v to give back", held[0].party, took)
	}
}

func multiPlays() []play {
	return []play{{name: "multilock: two in opposite orders, one of one", clients: 3, queues: bothLocks, use: useMulti, before: func(w *world) {
		there(w)
		w.srv.Create(otherDir, nil, 0, 0)
	}, act: func(k *kin) {
		for i, m := range []*zksync.Multi{
			both(k.clients[0].s, lockDir, otherDir), both(k.clients[1].s, otherDir, lockDir), both(k.clients[2].s, otherDir),
		} {
			k.do(time.Duration(i)*10*ms, func() {
				ls, held := k.many(k.clients[i], "party "+string(rune('a'+i)), 0, m.LockContext)
				time.Sleep(30 * ms)
				k.part(ls, held)
			})
		}
		k.do(20*ms, func() {
			ls, held := k.many(k.clients[0], "tries", 0, both(k.clients[0].s, otherDir, lockDir).TryLockContext, zksync.ErrNotAcquired)
			k.part(ls, held)
		})
	}}}
}
