//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package session

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/stretchr/testify/require"
)

func TestTheFileIsPrivateFromTheBeginning(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := sessionPath(t)
	mustOpen(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestAFileThatOthersMayReadIsMadePrivate(t *testing.T) {
	for _, mode := range []os.FileMode{0o644, 0o666, 0o640, 0o604, 0o700} {
		path := sessionPath(t)
		require.NoError(t, os.WriteFile(path, []byte(`{"session":"0x1","password":"cA=="}`+"\n"), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		_, previous := mustOpen(t, path)
		require.NotNil(t, previous)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), "was %o", mode)
	}
}

func TestASymbolicLinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "precious"), filepath.Join(dir, "session")
	require.NoError(t, os.WriteFile(target, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	_, _, err := openSessionFile(link, "s")
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.ErrorContains(t, err, "symbolic link")
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
}

func TestAPipeIsRefusedWithoutHanging(t *testing.T) {
	path := sessionPath(t)
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, _, err := openSessionFile(path, "s")
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.ErrorContains(t, err, "not a regular file")
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	path := sessionPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	if err := os.Chown(path, os.Geteuid()+1, -1); err != nil {
		require.ErrorIs(t, err, os.ErrPermission) // only root can set this trap
		return
	}
	_, _, err := openSessionFile(path, "s")
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.ErrorContains(t, err, "belongs to user")
}

func TestAfterARefusalNothingIsLeftLocked(t *testing.T) {
	path := sessionPath(t)
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	for range 3 {
		_, _, err := openSessionFile(path, "s")
		require.ErrorContains(t, err, "not a regular file")
	}
	require.NoError(t, os.Remove(path))
	mustOpen(t, path)
}

// Two openers must never both succeed, even while the file is being replaced
// under its name: a lock on a file that the name no longer means protects nothing.
func TestReplacingTheFileNeverLetsTwoOwnersIn(t *testing.T) {
	path := sessionPath(t)
	var owners, wins atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				f, _, err := openSessionFile(path, "s")
				if err != nil {
					if !errors.Is(err, errs.ErrMisuse) {
						t.Errorf("refused for another reason than that it is in use: %v", err)
					}
					continue
				}
				wins.Add(1)
				if owners.Add(1) != 1 {
					t.Error("two owners at once")
				}
				runtime.Gosched()
				owners.Add(-1)
				// Removed while it is still locked: whoever opened it before this point
				// and gets the lock after it has a file without a name.
				if err := os.Remove(path); err != nil {
					t.Error(err)
				}
				if err := f.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, wins.Load())
}
