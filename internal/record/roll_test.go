package record_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestARollNamesTheFirstAndCountsTheOthers(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		var names []string
		for i := range 20 {
			name := fmt.Sprintf("n%02d", i)
			names = append(names, name)
			srv.Create("/r/"+name, node.Content{Owner: node.Owner{Host: name}}.Encode(), 0, 0)
		}
		before := srv.Requests()
		all, err := record.Call(t.Context(), a, "/r", names)
		require.NoError(t, err)
		require.Equal(t, 16, srv.Requests()-before)
		require.Equal(t, "n00, n01, n02, n03, n04, n05, n06, n07, n08, n09, n10, n11, n12, n13, n14, n15 and 4 more", all.String())
		some, err := record.Call(t.Context(), a, "/r", []string{"gone", "n01"})
		require.NoError(t, err)
		require.Equal(t, "1 of 2: n01", some.Say("1 of 2"))
		require.Equal(t, "none", record.Roll{}.Say("none"))
	})
}

// The look has a fiftieth of a second, and none if the call was not ended by its context.
func TestAGlanceIsShort(t *testing.T) {
	alone(t, func(t *testing.T, srv *zktest.Server, a, _ *zkconn.Epoch) {
		look := func(ctx context.Context) (string, error) {
			_, _, err := a.Exists(ctx, "/")
			return "seen", err
		}
		require.Empty(t, record.Glance(t.Context(), a, look))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errs.ErrClosed)
		require.Empty(t, record.Glance(ctx, a, look))
		ctx, cancel = context.WithCancelCause(t.Context())
		cancel(nil)
		require.Equal(t, "seen", record.Glance(ctx, a, look))
		defer srv.Freeze()()
		start := time.Now()
		require.Empty(t, record.Glance(ctx, a, look))
		require.Equal(t, record.GlanceLimit, time.Since(start))

		require.NoError(t, record.Saying(nil, "seen"))
		err := record.Saying(context.Canceled, "seen")
		require.True(t, errors.Is(err, context.Canceled))
		require.EqualError(t, err, "context canceled: seen")
	})
}
