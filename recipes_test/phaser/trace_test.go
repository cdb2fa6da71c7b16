package phaser_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
)

func origin(context.Context, int, int) bool { panic("boom") }

// The panic goes on in the goroutine of the arrival, which says nothing of the function.
func TestThePanicOfAnActionIsLoggedWithItsTraceback(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var log bytes.Buffer
		s := v.Session(zksync.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		p := zkphaser.New(s, "/phasers/traced", zkphaser.WithOnAdvance(origin))
		v.Gives(0, p.Register)
		require.PanicsWithValue(t, "boom", func() { _, _ = p.Arrive(context.Background()) })
		require.Contains(t, log.String(), "phaser_test.origin")
		require.Contains(t, log.String(), "/phasers/traced")
	})
}
