package types_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// writers are calls that make something, and wait until they can.
var writers = map[string]func(ctx context.Context, s *zksync.Session, path string) error{
	"mutex": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zksync.NewMutex(s, p).LockContext(ctx)
		return err
	},
	"read lock": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zkrwmutex.New(s, p).RLockContext(ctx)
		return err
	},
	"semaphore": func(ctx context.Context, s *zksync.Session, p string) error {
		return zksemaphore.NewWeighted(s, p, 2).Acquire(ctx, 1)
	},
	"election": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zkelection.New(s, p, zkelection.Candidate{}).Campaign(ctx)
		return err
	},
	"barrier": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zkbarrier.NewBarrier(s, p, 1).Await(ctx)
		return err
	},
	"gate": func(ctx context.Context, s *zksync.Session, p string) error { return zklatch.NewGate(s, p).Close(ctx) },
	"number": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zkatomic.NewInt64(s, p).Add(ctx, 1)
		return err
	},
	"map": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkmap.New[string, string](s, p).Store(ctx, "k", "v")
	},
	"queue": func(ctx context.Context, s *zksync.Session, p string) error {
		return zkqueue.New[string](s, p).Put(ctx, "v")
	},
	"group": func(ctx context.Context, s *zksync.Session, p string) error {
		_, err := zkgroup.New(s, p).Join(ctx, zkgroup.Member{ID: "a"})
		return err
	},
}

func TestTheErrorOfACallWhoseContextEndsSaysWhyItsLastAttemptFailed(t *testing.T) {
	for name, use := range writers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var log bytes.Buffer
				s := v.Session(zksync.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
				refused := v.Server.SetError(zktest.CodeQuotaExceeded, zktest.Create, zktest.SetData)
				defer refused()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := use(ctx, s, "/app/it")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "the last attempt: quota exceeded at /app")
				said := strings.Count(log.String(), `error="quota exceeded"`)
				require.Equal(t, 1, said, log.String())
			})
		})
	}
}

func TestTheErrorOfACallWithoutAConnectionSaysWhyThereIsNone(t *testing.T) {
	for name, use := range writers {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				v.Server.Stop()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				err := use(ctx, s, "/app/it")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "the last attempt failed: ")
				v.Server.Restart()
			})
		})
	}
}

func TestALockWithoutAContextThatIsRefusedSaysSoInTheLog(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		log := new(proving.Log)
		s := v.Session(log.Option())
		refused := v.Server.SetError(zktest.CodeUnknownSession, zktest.Create)
		m := zksync.NewMutex(s, "/app/l")
		locked := make(chan struct{})
		go func() { m.Lock(); close(locked) }()
		time.Sleep(time.Minute)
		require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
		require.Contains(t, log.String(), "the server answered with error -12")
		require.Contains(t, log.String(), "path=/app/l")
		refused()
		<-locked
		m.Unlock()
	})
}
