package zkgroup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// untilEnd works on an item until its context ends.
func untilEnd(ctx context.Context, _ string, _ *zksync.Lease) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// The servers stop. Whenever the context of an Assign ends, the call ends within the session timeout.
func TestAssignEndsWithItsContextWhileThereIsNoSession(t *testing.T) {
	for _, begun := range []bool{true, false} {
		for _, away := range []time.Duration{0, time.Second, 14 * time.Second, time.Minute} {
			t.Run(fmt.Sprintf("begun=%v,away=%v", begun, away), func(t *testing.T) {
				proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
					s := v.Session()
					g := zkgroup.New(s, groupPath)
					m := joins(v, g, "a", "")
					ctx, cancel := context.WithCancel(t.Context())
					ends := make(chan error, 1)
					assign := func() { ends <- g.Assign(ctx, m, items(3), untilEnd) }
					if begun {
						go assign()
						v.Queued(groupPath+"/zkgroup/working", 1)
						v.Quiet()
					}
					v.Server.Stop()
					time.Sleep(away)
					if !begun {
						go assign()
						time.Sleep(time.Second)
					}
					cancel()
					ended := time.Now()
					select {
					case err := <-ends:
						require.NoError(t, err)
					case <-time.After(time.Hour):
						t.Error("it has not ended")
					}
					v.Within(ended, 15*time.Second, "the end of Assign")
					ended = time.Now()
					leaving, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					require.NoError(t, m.Leave(leaving))
					v.Within(ended, 15*time.Second, "Leave")
					v.Server.Restart()
				})
			})
		}
	}
}

// Somebody has removed a part of the record of the round, so no worker can begin. That, too, ends with the context.
func TestAssignEndsWithItsContextThoughItsRoundIsBroken(t *testing.T) {
	proving.InEachRelease(t, func(t *testing.T, v *proving.Env) {
		g := zkgroup.New(v.Session(), groupPath)
		m := joins(v, g, "a", "")
		v.Server.Set(groupPath+"/zkgroup/working", []byte("no such round"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		require.NoError(t, g.Assign(ctx, m, items(3), untilEnd))
		v.Within(begun, time.Minute+time.Second, "the end of Assign")
	})
}

// The session lives, so no end of it ends the wait for the removal of the worker's node.
func TestAnAssignEndsThoughTheServersRefuseForEver(t *testing.T) {
	for name, at := range map[string]time.Duration{"at the beginning": 0, "while it works": time.Second} {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				g := zkgroup.New(s, groupPath)
				m := joins(v, g, "a", "")
				ctx, cancel := context.WithCancel(t.Context())
				var heal func()
				time.AfterFunc(at, func() { heal = v.Server.SetError(zktest.CodeThrottled) })
				time.AfterFunc(at+time.Second, cancel)
				done := make(chan error, 1)
				go func() { done <- g.Assign(ctx, m, items(3), untilEnd) }()
				time.Sleep(at + time.Second + s.Timeout())
				v.Quiet()
				select {
				case err := <-done:
					require.NoError(t, err)
				default:
					require.Fail(t, "Assign goes on")
				}
				heal()
				again, stop := context.WithCancel(t.Context())
				require.NoError(t, g.Assign(again, m, items(1), func(context.Context, string, *zksync.Lease) error { stop(); return nil }))
			})
		})
	}
}
