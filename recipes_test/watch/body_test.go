package watch

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// loops are all iterators of the module, each with a body that it calls once.
var loops = map[string]func(ctx context.Context, s *zksync.Session, body func()){
	"zkwatch.Data": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkwatch.Data(ctx, s, "/n") {
			body()
			break
		}
	},
	"zkwatch.Data of a node that is not there": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkwatch.Data(ctx, s, "/absent") {
			body()
			break
		}
	},
	"zkwatch.Children": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkwatch.Children(ctx, s, "/n") {
			body()
			break
		}
	},
	"Tree.Changes": func(ctx context.Context, s *zksync.Session, body func()) {
		tree := zkwatch.NewTree(s, "/n")
		defer tree.Close()
		_ = tree.Start(ctx)
		for range tree.Changes(ctx) {
			body()
			break
		}
	},
	"Value.Watch": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkatomic.NewValue[string](s, "/value").Watch(ctx) {
			body()
			break
		}
	},
	"Int64.Watch": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkatomic.NewInt64(s, "/number").Watch(ctx) {
			body()
			break
		}
	},
	"Map.WatchKey": func(ctx context.Context, s *zksync.Session, body func()) {
		for range aMap(ctx, s).WatchKey(ctx, "k") {
			body()
			break
		}
	},
	"Map.Entries": func(ctx context.Context, s *zksync.Session, body func()) {
		for range aMap(ctx, s).Entries(ctx) {
			body()
			break
		}
	},
	"Map.Keys": func(ctx context.Context, s *zksync.Session, body func()) {
		for range aMap(ctx, s).Keys(ctx) {
			body()
			break
		}
	},
	"Map.Watch": func(ctx context.Context, s *zksync.Session, body func()) {
		for range aMap(ctx, s).Watch(ctx) {
			body()
			break
		}
	},
	"Map.Range": func(ctx context.Context, s *zksync.Session, body func()) {
		_ = aMap(ctx, s).Range(ctx, func(string, string) bool { body(); return false })
	},
	"zkmap.Cache.Changes": func(ctx context.Context, s *zksync.Session, body func()) {
		c, err := aMap(ctx, s).Cached(ctx)
		if err != nil {
			panic(err)
		}
		defer c.Close()
		for range c.Changes(ctx) {
			body()
			break
		}
	},
	"zkmap.Cache.All": func(ctx context.Context, s *zksync.Session, body func()) {
		c, err := aMap(ctx, s).Cached(ctx)
		if err != nil {
			panic(err)
		}
		defer c.Close()
		for range c.All() {
			body()
			break
		}
	},
	"Set.All": func(ctx context.Context, s *zksync.Session, body func()) {
		set := zkmap.NewSet[string](s, "/set")
		if _, err := set.Add(ctx, "k"); err != nil {
			panic(err)
		}
		for range set.All(ctx) {
			body()
			break
		}
	},
	"Queue.All": func(ctx context.Context, s *zksync.Session, body func()) {
		q := zkqueue.New[string](s, "/queue")
		if err := q.Put(ctx, "x"); err != nil {
			panic(err)
		}
		for range q.All(ctx) {
			body()
			break
		}
	},
	"Group.Watch": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkgroup.New(s, "/group").Watch(ctx) {
			body()
			break
		}
	},
	"Election.Observe": func(ctx context.Context, s *zksync.Session, body func()) {
		for range zkelection.New(s, "/election", zkelection.Candidate{}).Observe(ctx) {
			body()
			break
		}
	},
	"Session.Changes": func(ctx context.Context, s *zksync.Session, body func()) {
		time.AfterFunc(time.Second, func() { s.Close() })
		for range s.Changes(ctx) {
			body()
			break
		}
	},
}

func aMap(ctx context.Context, s *zksync.Session) *zkmap.Map[string, string] {
	m := zkmap.New[string, string](s, "/map")
	if err := m.Store(ctx, "k", "v"); err != nil {
		panic(err)
	}
	return m
}

// However the body of a loop ends, the loop leaves nothing on the servers and no goroutine, and the session can be used and closed.
func TestALoopLeavesNothingHoweverItsBodyEnds(t *testing.T) {
	bodies := map[string]func(){
		"break":  func() {},
		"panic":  func() { panic("the body's") },
		"Goexit": runtime.Goexit,
	}
	for _, version := range []string{"3.8", "3.5", "3.9"} {
		for name, loop := range loops {
			for how, body := range bodies {
				t.Run(version+"/"+name+"/"+how, func(t *testing.T) {
					t.Parallel()
					proving.InProcess(t, func(t *testing.T, v *proving.Env) {
						v.Put("/n/a/b", "1")
						s := v.Session()
						loop(t.Context(), v.Session(), func() {}) // what is made and refused once
						v.Quiet()
						before := v.Goroutines()
						called := false
						ended := make(chan struct{})
						go func() {
							defer close(ended)
							defer func() {
								if r := recover(); r != nil {
									require.Equal(t, "the body's", r)
								}
							}()
							loop(context.Background(), s, func() { called = true; body() })
						}()
						<-ended
						require.True(t, called)
						v.Quiet()
						require.Zero(t, v.Server.Watches())
						if name != "Session.Changes" {
							v.GoroutinesBack(before)
						}
						require.NoError(t, s.Close())
					}, zktest.WithVersion(version))
				})
			}
		}
	}
}
