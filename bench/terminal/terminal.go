// Package terminal tells whether a person looks.
package terminal

import (
	"io"
	"os"
)

// Is reports whether w is a terminal, where lines can change, and not a file or a pipe.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if null, failed := os.Stat(os.DevNull); err != nil || failed == nil && os.SameFile(info, null) { // that is a character device, too
		return false
	}
	return info.Mode()&os.ModeCharDevice != 0
}
