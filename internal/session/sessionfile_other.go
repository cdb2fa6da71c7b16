//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package session

import (
	"os"
	"runtime"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// openLocked refuses: without a lock that ends with the process there is no proof
// that the session found in the file has no living owner.
func openLocked(string) (*os.File, error) {
	return nil, errs.Misuse("session files do not work on %s, which has no file locks "+
		"that end with their process; leave WithSessionFile out", runtime.GOOS)
}
