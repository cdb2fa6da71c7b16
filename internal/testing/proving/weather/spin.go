package weather

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// AsksWithPauses wants a call to go on trying for three seconds, with pauses.
func AsksWithPauses(t *testing.T, srv *zktest.Server, op zktest.Op, code zktest.Code, call func(ctx context.Context) error) {
	t.Helper()
	const many = 150
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var asked atomic.Int32
	defer srv.InterceptFunc(func(*zktest.Request) zktest.Verdict {
		if asked.Add(1) < many {
			return zktest.Verdict{}
		}
		return zktest.Verdict{Delay: time.Second} // it spins, and time would stand still
	})()
	defer srv.SetError(code, op)()
	err := call(ctx)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "it goes on trying, with pauses: %v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, asked.Load(), int32(many))
}
