//go:build unix && !linux

package child

import (
	"os/signal"
	"syscall"
)

// FromBackground calls f, which may write to the terminal and move its foreground while this process is in the
// background. Go can block a signal for one thread on Linux only. Here this process ignores SIGTTOU from now on, and so
// do the commands that it starts later.
func FromBackground(f func()) {
	signal.Ignore(syscall.SIGTTOU)
	f()
}
