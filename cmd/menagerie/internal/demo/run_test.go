package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// workerEnv makes this test binary a worker: its value is the configuration.
const workerEnv = "MENAGERIE_DEMO_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := Work(context.Background(), configFromArgs(os.Args[1:]), os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// asProcess is Config.Command for these tests.
func asProcess(w WorkerConfig) *exec.Cmd {
	cmd := exec.Command(os.Args[0], w.Servers, w.Timeout.String(), w.Path, w.Dir, strconv.Itoa(w.Index),
		strconv.Itoa(w.Workers), strconv.Itoa(w.Rounds), strconv.Itoa(w.HaltRound), w.HaltStage)
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	return cmd
}

func configFromArgs(a []string) WorkerConfig {
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	timeout, err := time.ParseDuration(a[1])
	if err != nil {
		panic(err)
	}
	return WorkerConfig{
		Servers: a[0], Timeout: timeout, Path: a[2], Dir: a[3], Index: number(a[4]),
		Workers: number(a[5]), Rounds: number(a[6]), HaltRound: number(a[7]), HaltStage: a[8],
	}
}

func serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	srv := zktest.Start(zktest.WithTick(50*time.Millisecond), zktest.WithTimeoutLimits(100*time.Millisecond, time.Minute))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-served })
	return l.Addr().String()
}

func config(t *testing.T) Config {
	return Config{
		Servers: serve(t), Timeout: 3 * time.Second, Path: "/demo", Workers: 3, Rounds: 20,
		Patience: 2 * time.Minute, Command: asProcess, Out: io.Discard,
	}
}

func TestADemoIsRight(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Kill = true
	r, err := Run(context.Background(), cfg)
	require.NoError(t, err)
	require.Empty(t, r.Problem())
	require.Equal(t, 60, r.Counter)
	require.Equal(t, 1, r.Killed)
	require.GreaterOrEqual(t, r.Holds, 60)
}

// The proof that the demo proves anything: with every worker under a lock of its own, which
// keeps nobody apart, the verdict must be that something is wrong.
func TestADemoWithoutACommonLockIsFoundOut(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Workers, cfg.Rounds = 4, 50
	cfg.Command = func(w WorkerConfig) *exec.Cmd {
		w.Path += strconv.Itoa(w.Index)
		return asProcess(w)
	}
	r, err := Run(context.Background(), cfg)
	if err != nil {
		require.ErrorContains(t, err, "damaged") // two wrote at the same instant: found out too
		return
	}
	require.Positive(t, r.Overlaps)
	require.Less(t, r.Counter, r.Expected)
	require.NotEmpty(t, r.Problem())
}

func TestAWorkerThatFailsEndsTheDemoWithItsReason(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Command = func(w WorkerConfig) *exec.Cmd {
		if w.Index == 1 {
			w.Dir = "/nowhere"
		}
		return asProcess(w)
	}
	_, err := Run(context.Background(), cfg)
	require.ErrorContains(t, err, "worker 1")
	require.ErrorContains(t, err, "/nowhere/counter")
}

func TestADemoThatStandsStillGivesUp(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.Servers = "127.0.0.1:1" // nobody is there, and workers are patient
	cfg.Patience = 300 * time.Millisecond
	_, err := Run(context.Background(), cfg)
	require.ErrorIs(t, err, ErrStalled)
	require.ErrorContains(t, err, "0 of 60 rounds")
}

func TestACancelledDemoReturnsTheCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cfg := config(t)
	cfg.Rounds = MaxRounds
	cfg.Command = func(w WorkerConfig) *exec.Cmd {
		if w.Index == cfg.Workers-1 {
			cancel(cause)
		}
		return asProcess(w)
	}
	_, err := Run(ctx, cfg)
	require.ErrorIs(t, err, cause)
}
