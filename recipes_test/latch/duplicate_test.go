package latch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zktest"
)

// The servers refuse the second of two equal requests because of what the first one has made. The caller gives up before that
// answer comes.
func TestACancelledOpenThatArrivedTwiceLeavesNoMark(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		g := zklatch.NewGate(v.Session(), "/gates/db")
		require.NoError(t, g.Close(context.Background()))
		v.Server.Intercept(zktest.On(zktest.Create, "/gates/db/closed/*").Duplicate().DelayReply(time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, g.Open(ctx), context.DeadlineExceeded)
		v.Later()
		require.Empty(t, v.Server.Children("/gates/db/closed"))
	})
}
