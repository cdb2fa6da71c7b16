package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAPathThatHoldsSomethingElseIsMisuseForEveryBarrier(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		ctx := context.Background()
		owners := map[string]func(path string) error{
			"latch":          func(path string) error { return zklatch.New(s, path, 2).CountDown(ctx) },
			"double barrier": func(path string) error { return entersInVain(v, zkbarrier.NewDoubleBarrier(s, path, 2), path) },
			"barrier": func(path string) error {
				return zkbarrier.NewBarrier(s, path, 2).Reset(ctx)
			},
			"phaser": func(path string) error {
				_, err := zkphaser.New(s, path).Register(ctx)
				return err
			},
			"text":   func(path string) error { v.Put(path, "mine"); return nil },
			"null":   func(path string) error { v.Put(path, "null"); return nil },
			"list":   func(path string) error { v.Put(path, "[1]"); return nil },
			"object": func(path string) error { v.Put(path, `{"a":1}`); return nil },
		}
		comers := map[string]func(ctx context.Context, path string) error{
			"latch":          func(ctx context.Context, path string) error { return zklatch.New(s, path, 2).CountDown(ctx) },
			"double barrier": func(ctx context.Context, path string) error { return zkbarrier.NewDoubleBarrier(s, path, 2).Enter(ctx) },
			"barrier": func(ctx context.Context, path string) error {
				_, err := zkbarrier.NewBarrier(s, path, 2).Await(ctx)
				return err
			},
			"phaser": func(ctx context.Context, path string) error {
				_, err := zkphaser.New(s, path).Register(ctx)
				return err
			},
		}
		for owner, settles := range owners {
			for comer, comes := range comers {
				if owner == comer {
					continue
				}
				path := "/occupied/" + owner + " by " + comer
				require.NoError(t, settles(path))
				ctx, cancel := context.WithTimeout(ctx, v.Patience())
				assert.ErrorIs(t, comes(ctx, path), zksync.ErrMisuse, "a %s at the path of a %s", comer, owner)
				cancel()
			}
		}
	})
}

// entersInVain gives up when it has settled there.
func entersInVain(v *proving.Env, b *zkbarrier.DoubleBarrier, path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := proving.Waits(ctx, b.Enter)
	v.Queued(path+"/parties", 1)
	cancel()
	if err := v.Failed(a); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("it entered alone: %w", err)
	}
	return nil
}
