package zkshard_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	_ "github.com/go-menagerie/menagerie/internal/testing/proving" // exact pauses
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// world is some ensembles: "a:2181" is the first, "b:2181" the second.
type world struct {
	t    *testing.T
	srvs map[string]*zktest.Server
}

func inProcess(t *testing.T) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("injects faults inside the server, so it ran with the in-process tests")
	}
}

func play(t *testing.T, n int, f func(t *testing.T, w *world)) {
	t.Helper()
	inProcess(t)
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, make(map[string]*zktest.Server)}
		for i := range n {
			w.srvs[string(rune('a'+i))] = zktest.Run(t, zktest.WithLeftovers())
		}
		f(t, w)
	})
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	return w.srvs[host].DialContext(ctx, network, address)
}

// list is "a b" as connect strings.
func list(names string) []string { return strings.Fields(names) }

func (w *world) try(ctx context.Context, names, from string, opts ...zksync.SessionOption) (*zkshard.Shards, error) {
	opts = append([]zksync.SessionOption{zksync.WithDialer(w.dial)}, opts...)
	if from != "" {
		opts = append(opts, zkshard.WithMoving(list(from)))
	}
	return zkshard.Connect(ctx, list(names), opts...)
}

func (w *world) connect(names, from string, opts ...zksync.SessionOption) *zkshard.Shards {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	s, err := w.try(ctx, names, from, opts...)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) refused(names, from string) error {
	w.t.Helper()
	_, err := w.try(w.t.Context(), names, from)
	require.ErrorIs(w.t, err, zksync.ErrMisuse)
	return err
}
