//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processCPU is the processor time that this process has used, in user and in system mode.
func processCPU() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
