package types_test

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// clean removes each directory below /clean that has been empty for 3 ms, and the first three of
// them as soon as somebody wants to make something there.
func clean(v *proving.Env) {
	srv, early := v.Server, 0
	remove := func(p string) {
		if _, there := srv.Node(p); there && len(srv.Children(p)) == 0 {
			srv.Delete(p)
		}
	}
	srv.OnCommit(func(tx zktest.Txn) {
		for _, c := range tx.Changes {
			if c.Kind == zktest.Created && c.Owner <= 0 && path.Dir(c.Path) == "/clean" {
				time.AfterFunc(3*time.Millisecond, func() { remove(c.Path) })
			}
		}
	})
	srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		for i, p := range q.Paths {
			creates := q.Op == zktest.Create || len(q.Ops) > i && q.Ops[i] == zktest.Create
			if creates && path.Dir(path.Dir(p)) == "/clean" && early < 3 {
				early++
				remove(path.Dir(p))
			}
		}
		return zktest.Verdict{}
	})
}

func TestACleanerOfEmptyDirectoriesStarvesNobody(t *testing.T) {
	uses := map[string]func(ctx context.Context, s *zksync.Session, path string) error{
		"mutex": func(ctx context.Context, s *zksync.Session, p string) error {
			l, err := zksync.NewMutex(s, p).LockContext(ctx)
			if err == nil {
				err = l.Unlock()
			}
			return err
		},
		"gate": func(ctx context.Context, s *zksync.Session, p string) error { return zklatch.NewGate(s, p).Close(ctx) },
		"semaphore": func(ctx context.Context, s *zksync.Session, p string) error {
			l, err := zksemaphore.NewWeighted(s, p+"/sem", 2).AcquireLease(ctx, 1)
			if err == nil {
				err = l.Unlock()
			}
			return err
		},
		"kept node": func(ctx context.Context, s *zksync.Session, p string) error {
			k := zkwatch.Keep(s, p+"/kept", []byte("x"))
			defer k.Close()
			return k.SetData(ctx, []byte("y"))
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				v.Server.Create("/clean", nil, 0, 0)
				clean(v)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				require.NoError(t, use(ctx, v.Session(), "/clean/here"))
			})
		})
	}
}
