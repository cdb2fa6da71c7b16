package latch_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// Whose context ends learns who is missing, as far as the servers say that at once.
func TestAWaitThatEndsNamesThoseWhoHaveComeOrAreMissing(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	who := func(name string) string { return fmt.Sprintf("%s (pid %d, %s)", host, os.Getpid(), name) }
	for name, c := range map[string]struct {
		prepare func(a, b *zksync.Session) (wait func(context.Context) error)
		text    string
	}{
		"latch": {func(a, b *zksync.Session) func(context.Context) error {
			require.NoError(t, zklatch.New(a, proving.LatchPath, 3).CountDown(context.Background()))
			return zklatch.New(b, proving.LatchPath, 3).Wait
		}, ": 1 of 3 events have been counted: " + who("a")},
		"phaser": {func(a, b *zksync.Session) func(context.Context) error {
			p, q := zkphaser.New(a, proving.PhaserPath), zkphaser.New(b, proving.PhaserPath)
			for _, x := range []*zkphaser.Phaser{p, q} {
				_, err := x.Register(context.Background())
				require.NoError(t, err)
			}
			return func(ctx context.Context) error { _, err := p.ArriveAndAwaitAdvance(ctx); return err }
		}, ": 1 of 2 have arrived: " + who("a") + "; missing: " + who("b")},
		"phaser, by a stranger": {func(a, b *zksync.Session) func(context.Context) error {
			p, q := zkphaser.New(a, proving.PhaserPath), zkphaser.New(b, proving.PhaserPath)
			_, err := p.Register(context.Background())
			require.NoError(t, err)
			return func(ctx context.Context) error { _, err := q.AwaitAdvance(ctx, 0); return err }
		}, ": 0 of 1 have arrived; missing: " + who("a")},
		"phaser, without parties": {func(a, b *zksync.Session) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := zkphaser.New(a, proving.PhaserPath).AwaitAdvance(ctx, 0)
				return err
			}
		}, ": 0 of 0 have arrived"},
		"wait group": {func(a, b *zksync.Session) func(context.Context) error {
			require.NoError(t, zkwaitgroup.New(a, proving.GroupPath).AddContext(context.Background(), 2))
			return zkwaitgroup.New(b, proving.GroupPath).WaitContext
		}, ": 1 process has members that are not done: " + who("a")},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, silent), func(t *testing.T) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					wait := c.prepare(v.Session(zksync.WithName("a")), v.Session(zksync.WithName("b")))
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					start, took, text := time.Now(), time.Second, c.text
					ends := proving.Waits(ctx, wait)
					v.Quiet()
					if silent {
						defer v.Server.Freeze()()
						took, text = time.Second+20*time.Millisecond, ""
					}
					err := v.Failed(ends)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					_, said, _ := strings.Cut(err.Error(), "/a: context deadline exceeded")
					require.Equal(t, text, said)
					v.Took(start, took, "the wait")
				})
			})
		}
	}
}
