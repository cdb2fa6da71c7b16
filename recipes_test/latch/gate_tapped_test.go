package latch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zktest"
)

// The session of a tapped connection lives on, and what the Open made with it.
func TestAnOpenThatFailsOnATappedConnectionLeavesNoMark(t *testing.T) {
	for name, rule := range map[string]func() *zktest.Rule{
		"sync":   func() *zktest.Rule { return zktest.On(zktest.Sync, gatePath) },
		"look":   func() *zktest.Rule { return zktest.On(zktest.Exists, gatePath+"/closed") },
		"delete": func() *zktest.Rule { return zktest.On(zktest.Delete, gatePath+"/**") },
	} {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					s, g := v.Tapped(), zklatch.NewGate(v.Session(), gatePath)
					require.NoError(t, g.Close(context.Background()))
					held := v.Server.Intercept(rule().Of(s.ID()).Nth(1).Hold())
					opening := proving.Waits(ctx, zklatch.NewGate(s, gatePath).Open)
					require.NoError(t, held.WaitHeld(ctx))
					require.Len(t, v.Children(gatePath+"/closed"), 1)
					if closes {
						go s.Close()
					}
					cancel()
					require.Error(t, v.Failed(opening))
					held.Release()
					time.Sleep(time.Minute)
					if v.Exists(gatePath + "/closed") { // else it was opened by what was under way
						require.Empty(t, v.Children(gatePath+"/closed"))
					}
				})
			})
		}
	}
}
