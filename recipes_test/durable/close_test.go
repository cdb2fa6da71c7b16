package durable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zktest"
)

// A session may be closed at any request. Then no process has the hold open, and the owner can resume it.
func TestAHoldIsLeftToOthersWheneverItsSessionIsClosed(t *testing.T) {
	for what, use := range map[string]func(*proving.Env, *zkdurable.Mutex, int64) error{
		"lock": func(v *proving.Env, m *zkdurable.Mutex, _ int64) error {
			h, err := m.Lock(ctx, "a")
			if err == nil {
				err = h.Unlock(ctx)
			}
			return err
		},
		"resume": func(v *proving.Env, m *zkdurable.Mutex, _ int64) error {
			_, err := m.Resume(ctx, "a")
			return err
		},
		"next session": func(v *proving.Env, m *zkdurable.Mutex, id int64) error {
			v.Server.Expire(id)
			time.Sleep(time.Minute)
			return nil
		},
	} {
		for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
			proving.EveryRequest(t, what, func(s *proving.Strike) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					closesAtOnce(v, s, what, fate, use)
				})
			})
		}
	}
}

func closesAtOnce(v *proving.Env, s *proving.Strike, what string, fate zktest.Fate, use func(*proving.Env, *zkdurable.Mutex, int64) error) {
	t := v.T
	t.Helper()
	other, session := mutexes(v, 1)[0], v.Session()
	m := zkdurable.NewMutex(session, path)
	switch what {
	case "resume":
		dying := v.Session()
		locks(v, zkdurable.NewMutex(dying, path), "a")
		require.NoError(t, dying.Close())
	case "next session":
		locks(v, m, "a")
	}
	v.Quiet()
	s.Falls(v.Server, func(q *zktest.Request) zktest.Verdict {
		go session.Close()
		return zktest.Verdict{Fate: fate, Delay: time.Second}
	})
	err := use(v, m, session.ID())
	_ = session.Close()
	v.Later()
	x := holder(v, other)
	require.False(t, x.Alive, "%s, fate %v: %v", s.Name, fate, err)
	if x.Owner != "" {
		h, err := other.Resume(ctx, "a")
		require.NoError(t, err, s.Name)
		require.NoError(t, h.Unlock(ctx), s.Name)
	}
	v.Later()
	if v.Exists(base) {
		v.NothingLeft(base, "queue", "writers")
	}
}
