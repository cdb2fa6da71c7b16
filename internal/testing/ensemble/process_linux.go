package ensemble

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// serverAttributes keep a Ctrl-C at the terminal from the servers, whose end is ours to decide, and
// have the kernel kill them when this process dies without closing the ensemble.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitFrozen returns when no thread of the process runs any more. The signal is sent when kill returns,
// but each thread stops by itself, the next time that it enters the kernel, and answers until then.
// The kernel tells nobody when the last one has stopped: hence the looks, a millisecond apart.
func (p *process) awaitFrozen() error {
	for limit := time.Now().Add(stopLimit); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		frozen, err := p.frozen()
		if frozen || err != nil {
			return err
		}
		if p.ended() {
			return os.ErrProcessDone
		}
	}
	return fmt.Errorf("process %d runs %v after it was told to stop", p.pid(), stopLimit)
}

// frozen reads the state of every thread. One that is stopped starts no others, so a single look at all
// of them decides.
func (p *process) frozen() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid()))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return false, err
		}
		// The state follows the name, which stands in parentheses and may hold any.
		name := bytes.LastIndexByte(stat, ')')
		if name < 0 || len(stat) < name+3 || stat[name+2] != 'T' {
			return false, nil
		}
	}
	return len(threads) > 0, nil
}
