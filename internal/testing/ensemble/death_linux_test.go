package ensemble

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// victimEnv makes the test binary start an ensemble, print where the servers are, and wait to be killed.
const victimEnv = "ENSEMBLE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) == "" {
		os.Exit(m.Run())
	}
	e, err := Start(context.Background(), Config{Servers: 3})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(e.dir)
	for _, s := range e.servers {
		fmt.Println(s.Pid())
	}
	select {}
}

func TestServersDieWithAProcessThatIsKilled(t *testing.T) {
	Require(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, os.Args[0])
	victim.Env = append(os.Environ(), victimEnv+"=1")
	victim.Stderr = os.Stderr
	out, err := victim.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, victim.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	dir := lines.Text()
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	var pids []int
	for range 3 {
		require.True(t, lines.Scan())
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, 0), "the server runs")
		pids = append(pids, pid)
	}

	require.NoError(t, victim.Process.Kill())
	require.Error(t, victim.Wait())
	for _, pid := range pids {
		for alive(pid) {
			require.NoError(t, pause(ctx), "server %d outlives its parent", pid)
		}
	}
}

// alive tells a running process from a dead one, and from one that waits for init to notice its death.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var id int
	var name, state string
	_, err = fmt.Sscan(string(stat), &id, &name, &state)
	return err == nil && state != "Z" && state != "X"
}
