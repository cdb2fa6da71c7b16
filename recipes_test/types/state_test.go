package types_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// stater is a State, whatever its type.
func stater[T any](f func(context.Context) (T, error)) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) { return f(ctx) }
}

// staters are the States of all types at a path.
func staters(s *zksync.Session, path string) map[string]func(context.Context) (any, error) {
	return map[string]func(context.Context) (any, error){
		"lock":           stater(zksync.NewMutex(s, path).State),
		"rwlock":         stater(zkrwmutex.New(s, path).State),
		"semaphore":      stater(zksemaphore.NewWeighted(s, path, 2).State),
		"election":       stater(zkelection.New(s, path, zkelection.Candidate{ID: "a"}).State),
		"condition":      stater(zkcond.New(zksync.NewMutex(s, "/lock"), path).State),
		"once":           stater(zkonce.New(s, path).State),
		"promise":        stater(zkonce.NewPromise[int](s, path).State),
		"barrier":        stater(zkbarrier.NewBarrier(s, path, 2).State),
		"double barrier": stater(zkbarrier.NewDoubleBarrier(s, path, 2).State),
		"latch":          stater(zklatch.New(s, path, 2).State),
		"gate":           stater(zklatch.NewGate(s, path).State),
		"phaser":         stater(zkphaser.New(s, path).State),
		"wait group":     stater(zkwaitgroup.New(s, path).State),
		"flight":         stater(zkflight.New[int](s, path).State),
		"counter":        stater(zkatomic.NewInt64(s, path).State),
		"sequence":       stater(zkatomic.NewSequence(s, path).State),
		"value":          stater(zkatomic.NewValue[int](s, path).State),
		"slots":          stater(zkatomic.NewSlots(s, path, 2).State),
		"map":            stater(zkmap.New[string, int](s, path).State),
		"set":            stater(zkmap.NewSet[string](s, path).State),
		"queue":          stater(zkqueue.New[int](s, path).State),
		"group":          stater(zkgroup.New(s, path).State),
		"schedule":       stater(zkcron.New(s, path).State),
		"rate":           stater(zkrate.New(s, path, 10, 5).State),
		"durable lock":   stater(zkdurable.NewMutex(s, path).State),
	}
}

// Shards have one path on each ensemble.
func TestAStateOfShardsWithAnyDataIsAnErrorOrIsClean(t *testing.T) {
	for _, data := range []string{"", "\x1b[2J", "null", "[]", "{}", `{"name":"\u001b[2J","stage":"\u001b[2J"}`, `{"generation":-1,"stage":"open","to":[{"name":"a","servers":"\u001b[2J"}]}`} {
		srv := zktest.Run(t)
		srv.Create("/shards", nil, 0, 0)
		srv.Create("/shards/zkshard", []byte(data), 0, 0)
		st, err := zkshard.StateOf(t.Context(), srv.Session(t))
		require.NotContains(t, fmt.Sprint(st), "\x1b", data)
		if err != nil {
			require.ErrorIs(t, err, zksync.ErrMisuse, data)
		}
	}
}

func TestAStateOfAnUnusedPathMakesNothing(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	for kind, state := range staters(s, "/unused") {
		st, err := state(t.Context())
		require.NoError(t, err, kind)
		require.Contains(t, fmt.Sprint(st), "/unused: "+kind+", ")
	}
	require.NotContains(t, srv.Children("/"), "unused")
}

// Any program may write the data.
func TestAStateOfAnyForeignDataIsAnErrorOrIsClean(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	nodes := []string{"", "/closed", "/result", "/queue", "/parties", "/counts", "/phase--1", "/round", "/round/members", "/round/members/a", "/round/alive"}
	for _, typed := range []string{
		layout.Int64, layout.Value, layout.Sequence, layout.Slots, layout.Map, layout.Set, layout.Queue, layout.Group, layout.Cron, layout.Durable, layout.Promise, layout.Rate,
	} {
		nodes = append(nodes, "/"+typed, "/"+typed+"/value", "/"+typed+"/members", "/"+typed+"/members/%zz", "/"+typed+"/shares", "/"+typed+"/record", "/"+typed+"/record/record")
	}
	for i, data := range []string{
		"", "\x1b[2J", "null", "[]", "{}", `{"total":-1}`, `{"parties":-1,"generation":-1}`, `{"phase":-1}`, `{"permits":-1}`, `{"signals":[{"n":-1}]}`,
		`{"hold":{"token":"x","owner":"\u001b[2J"}}`, `{"done":true,"failed":"\u001b[2J"}`, `{"n":-1,"taken":{"":-9223372036854775808}}`,
	} {
		// Each node stands alone with its parents, so that each type meets it.
		for k, node := range nodes {
			path := fmt.Sprintf("/foreign-%d-%d", i, k)
			for at := range len(node) + 1 {
				if p := path + node[:at]; at == len(node) || node[at] == '/' {
					srv.Create(p, []byte(data), 0, 0)
				}
			}
			for kind, state := range staters(s, path) {
				st, err := state(t.Context())
				require.NotContains(t, fmt.Sprint(st), "\x1b", "%s of %s with %s", kind, node, data)
				if err != nil {
					require.ErrorIs(t, err, zksync.ErrMisuse, "%s of %s with %s", kind, node, data)
				}
			}
		}
	}
}

func TestAStateThatMayNotBeReadIsAnError(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	_, err := s.Conn().Create("/mine", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "me:" + "AAAAAAAAAAAAAAAAAAAAAAAAAAA="}})
	require.NoError(t, err)
	for kind, state := range staters(s, "/mine") {
		_, err := state(t.Context())
		require.ErrorIs(t, err, zk.ErrNoAuth, kind)
		require.True(t, errors.As(err, new(*zksync.Error)), kind)
	}
}

func TestTheStateOfASemaphoreRefusesWhatItsAcquireRefuses(t *testing.T) {
	srv := zktest.Run(t)
	s := srv.Session(t)
	l, err := zksync.NewMutex(s, "/locked").LockContext(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
	srv.Load(map[string]string{"/empty": "{}", "/null": "null", "/none": `{"permits":null}`})
	for _, path := range []string{"/locked", "/empty", "/null", "/none"} {
		w := zksemaphore.NewWeighted(s, path, 2)
		require.ErrorIs(t, w.Acquire(t.Context(), 1), zksync.ErrMisuse, path)
		_, err := w.State(t.Context())
		require.ErrorIs(t, err, zksync.ErrMisuse, path)
	}
}
