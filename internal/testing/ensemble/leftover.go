package ensemble

import (
	"os"
	"path/filepath"
	"time"
)

const (
	dirPattern = "zk-ensemble-*"
	lockName   = "lock"
)

// RemoveLeftovers removes the temporary folders of ensembles whose process died without closing them, and returns
// their names. The servers died with it on Linux, and so did networks.
func RemoveLeftovers() []string {
	var removed []string
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern)) // the pattern is right
	for _, dir := range dirs {
		info, err := os.Stat(filepath.Join(dir, lockName))
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue // it is not ours, or may not have been locked yet
		}
		lock, err := lockFolder(dir)
		if err != nil {
			continue // in use, or somebody else's
		}
		if os.RemoveAll(dir) == nil {
			removed = append(removed, dir)
		}
		lock.Close()
	}
	return removed
}
