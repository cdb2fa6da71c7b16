package ensemble

import (
	"os"
	"path/filepath"
)

// lockFolder marks a folder as in use, for good: that its process died is found out on Unix only.
func lockFolder(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}
