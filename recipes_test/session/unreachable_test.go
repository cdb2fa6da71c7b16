package session_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance113ConnectKeepsItsDeadline(t *testing.T) {
	faults := map[string]func(v *proving.Env) (heal func()){
		"refused": func(v *proving.Env) func() { return v.Server.Refuse() },
		"frozen":  func(v *proving.Env) func() { return v.Server.Freeze() },
		"down": func(v *proving.Env) func() {
			v.Server.Stop()
			return v.Server.Restart
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				heal := fault(v)
				ctx, start := proving.Soon(t)
				_, err := zksync.Connect(ctx, "zk1:2181", zksync.WithDialer(v.Server.DialContext))
				require.LessOrEqual(t, time.Since(start), proving.Deadline+v.Slack())
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "zk1:2181")
				heal()
				time.Sleep(time.Minute) // what the server found in its sockets opened sessions, which expire
			})
		})
	}
}

// Calls without a context have bounds of their own: a third of the session timeout, and a second.
func TestAcceptance113CallsWithoutAContextEndByThemselves(t *testing.T) {
	for _, timeout := range []time.Duration{3 * time.Second, 9 * time.Second} {
		t.Run(fmt.Sprint(timeout), func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session(zksync.WithTimeout(timeout))
				free := zksync.NewMutex(s, "/locks/b")
				held := zksync.NewMutex(s, proving.LockPath)
				held.Lock()
				thaw := v.Server.Freeze()
				start := time.Now()
				require.False(t, free.TryLock())
				require.LessOrEqual(t, time.Since(start), timeout/3+v.Slack())
				start = time.Now()
				held.Unlock()
				require.LessOrEqual(t, time.Since(start), time.Second)
				start = time.Now()
				require.NoError(t, s.Close())
				require.LessOrEqual(t, time.Since(start), 2*time.Second+v.Slack())
				thaw()
				time.Sleep(time.Minute)
			})
		})
	}
}
