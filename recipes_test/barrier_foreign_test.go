package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestAPathThatHoldsSomethingElseIsMisuseForEveryBarrier(t *testing.T) {
	each(t, func(t *testing.T, v *env) {
		s := v.session()
		ctx := context.Background()
		owners := map[string]func(path string) error{
			"latch":          func(path string) error { return zklatch.New(s, path, 2).CountDown(ctx) },
			"double barrier": func(path string) error { return v.entersInVain(zkbarrier.NewDoubleBarrier(s, path, 2), path) },
			"barrier": func(path string) error {
				_, err := zkbarrier.NewBarrier(s, path, 2).Waiting(ctx)
				return err
			},
			"phaser": func(path string) error {
				_, err := zkphaser.New(s, path).Register(ctx)
				return err
			},
			"text":   func(path string) error { v.put(path, "mine"); return nil },
			"null":   func(path string) error { v.put(path, "null"); return nil },
			"list":   func(path string) error { v.put(path, "[1]"); return nil },
			"object": func(path string) error { v.put(path, `{"a":1}`); return nil },
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
				ctx, cancel := context.WithTimeout(ctx, v.patience())
				assert.ErrorIs(t, comes(ctx, path), zksync.ErrMisuse, "a %s at the path of a %s", comer, owner)
				cancel()
			}
		}
	})
}

// entersInVain gives up when it has settled there.
func (v *env) entersInVain(b *zkbarrier.DoubleBarrier, path string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := waits(ctx, b.Enter)
	v.queued(path+"/parties", 1)
	cancel()
	if err := v.failed(a); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("it entered alone: %w", err)
	}
	return nil
}
