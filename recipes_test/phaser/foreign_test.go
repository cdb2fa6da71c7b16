package phaser_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// No phaser has such a number, and none would ever advance from it.
func TestAPhaseBeyondTheLastOneIsNotThatOfAPhaser(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		p := phasers(v, 1)[0]
		v.Put(proving.PhaserPath, `{"phase":2147483648}`)
		_, err := p.Register(context.Background())
		require.ErrorIs(t, err, zksync.ErrMisuse)
	})
}
