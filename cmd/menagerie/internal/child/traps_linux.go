package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Traps reports whether the command catches sig now. It is true if the system does not say.
func (c *Child) Traps(sig syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(status), "\nSigCgt:")
	line, _, _ := strings.Cut(rest, "\n")
	caught, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err != nil || caught>>(sig-1)&1 == 1
}
