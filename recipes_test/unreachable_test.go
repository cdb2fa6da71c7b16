package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func TestAcceptance113ConnectKeepsItsDeadline(t *testing.T) {
	faults := map[string]func(v *env) (heal func()){
		"refused": func(v *env) func() { return v.srv.Refuse() },
		"frozen":  func(v *env) func() { return v.srv.Freeze() },
		"down": func(v *env) func() {
			v.srv.Stop()
			return v.srv.Restart
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(t *testing.T, v *env) {
				heal := fault(v)
				ctx, start := soon(t)
				_, err := zksync.Connect(ctx, "zk1:2181", zksync.WithDialer(v.srv.DialContext))
				require.LessOrEqual(t, time.Since(start), deadline+v.slack())
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
			inProcess(t, func(t *testing.T, v *env) {
				s := v.session(zksync.WithTimeout(timeout))
				free := zksync.NewMutex(s, "/locks/b")
				held := zksync.NewMutex(s, lockPath)
				held.Lock()
				thaw := v.srv.Freeze()
				start := time.Now()
				require.False(t, free.TryLock())
				require.LessOrEqual(t, time.Since(start), timeout/3+v.slack())
				start = time.Now()
				held.Unlock()
				require.LessOrEqual(t, time.Since(start), time.Second)
				start = time.Now()
				require.NoError(t, s.Close())
				require.LessOrEqual(t, time.Since(start), 2*time.Second+v.slack())
				thaw()
				time.Sleep(time.Minute)
			})
		})
	}
}
