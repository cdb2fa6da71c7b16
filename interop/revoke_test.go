package interop

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
)

// revocation starts the Java program of that name.
func revocation(t *testing.T, ctx context.Context, args ...string) (says func(want string)) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "java", append([]string{"-cp", "/usr/share/java/*",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "Revocation.java"}, args...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait())
	})
	lines := bufio.NewScanner(out)
	return func(want string) {
		t.Helper()
		require.True(t, lines.Scan(), "it ended early")
		require.Equal(t, want, lines.Text())
	}
}

func TestAcceptance158ARevocableHolderOfCuratorsCanBeAskedAndOursOnlyByUs(t *testing.T) {
	t.Parallel()
	peers(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	servers := ensemble.ForTest(t, 1).Connect()
	connect := func() *zksync.Session {
		s, err := zksync.Connect(ctx, servers, zksync.WithTimeout(lifetime))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	const lock = "/shared/lock"
	s := connect()
	first := func() zksync.Contender {
		list, err := zksync.Contenders(ctx, s, lock)
		require.NoError(t, err)
		require.NotEmpty(t, list)
		return list[0]
	}

	theirs := revocation(t, ctx, servers, "hold", lock)
	theirs("held")
	granted := make(chan *zksync.Lease, 1)
	go func() {
		l, err := zksync.NewMutex(s, lock).LockContext(ctx)
		if err != nil {
			t.Error(err)
		}
		granted <- l
	}()
	require.NoError(t, zksync.Revoke(ctx, s, first()))
	theirs("asked")
	l := <-granted
	require.NotNil(t, l)

	// The entry of ours is sealed: the servers refuse Curator's write to it.
	told := l.Revoked()
	require.True(t, queue.Sealed(l.Node()))
	revocation(t, ctx, servers, "ask", l.Node())("NOAUTH")
	require.NoError(t, l.Err())
	select {
	case <-told:
		t.Fatal("it was not asked by one of us")
	default:
	}
	c := first()
	require.Equal(t, path.Base(l.Node()), path.Base(c.Node))
	require.NoError(t, zksync.Revoke(ctx, s, c))
	<-told
	require.NoError(t, l.Unlock())
	require.Eventually(t, func() bool {
		names, _, err := s.Conn().Children(lock)
		return err != nil || !strings.Contains(strings.Join(names, " "), "revoke")
	}, time.Minute, 10*time.Millisecond)
}

// The marks come and go among the entries of the others.
func TestAcceptance157ALockWithADelayAndThoseOfThreeLibrariesExcludeEachOther(t *testing.T) {
	t.Parallel()
	peers(t)
	a := newArena(t, ensemble.ForTest(t, 1).Connect())
	a.curator("lock", 40)
	a.kazoo("lock-name", 40)
	a.gozk(40)
	for range 2 {
		a.ours("our mutex with a delay", 40, true, func(s *zksync.Session) func(context.Context, func() error) error {
			m := zksync.NewMutex(s, a.path, zksync.WithLockDelay(time.Hour))
			return func(ctx context.Context, f func() error) error {
				return m.Do(ctx, func(context.Context, *zksync.Lease) error { return f() })
			}
		})
	}
	a.check()
}
