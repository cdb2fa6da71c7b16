//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package session

import (
	"errors"
	"os"
	"syscall"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// openLocked opens path for reading and writing, creates it if it is missing,
// makes sure that nobody else can read it, and locks it. It never waits.
func openLocked(path string) (*os.File, error) {
	for {
		// O_NOFOLLOW: in a directory that others may write to, a link could make us
		// overwrite any file of our own. O_NONBLOCK: opening a pipe must not hang.
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
			return nil, errs.Misuse("is a symbolic link; give the path of the file itself")
		}
		if err != nil {
			return nil, err
		}
		current, err := lockAndCheck(file, path)
		if err == nil && current {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		// The name was given to another file between opening and locking, so the
		// lock protected nothing. The next round sees the new file.
	}
}

// lockAndCheck locks an open file and reports whether path still names it.
func lockAndCheck(file *os.File, path string) (current bool, err error) {
	if err := flock(file); err != nil {
		return false, err
	}
	opened, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(opened, named) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, keepPrivate(file, opened)
}

// flock locks the open file. This lock belongs to the open file, and not, like that
// of fcntl, to the process: so it also keeps a second Session of this process out.
func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errSessionFileLocked
		case err != nil:
			return os.NewSyscallError("flock", err)
		default:
			return nil
		}
	}
}

// keepPrivate makes sure that only this user can read the file. Whoever has
// the password of a session can end the session, and so take its locks away.
func keepPrivate(file *os.File, info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errs.Misuse("is not a regular file")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int64(stat.Uid) != int64(os.Geteuid()) {
		return errs.Misuse("belongs to user %d, who could read the session's password; remove it or give another path", stat.Uid)
	}
	if info.Mode().Perm()&0o177 == 0 {
		return nil
	}
	if err := file.Chmod(0o600); err != nil {
		return errs.Misuse("others may read it, and its mode cannot be changed to 0600: %w", err)
	}
	return nil
}
