//go:build unix

package engine

import (
	"syscall"
	"time"
)

// processorTime is what this process has used: whatever else the machine does hardly changes it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
