//go:build unix

package ensemble

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder marks a folder as in use, until the file is closed or this process ends. It fails if the folder
// is in use already.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
