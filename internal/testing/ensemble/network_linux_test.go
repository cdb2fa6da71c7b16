package ensemble_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestWhatIsCutIsLostInOneDirectionOnly(t *testing.T) {
	if err := ensemble.CanCut(); errors.Is(err, ensemble.ErrNoNetwork) {
		t.Skip(err) // the machine's to decide, and the chaos test says so, too
	}
	require.NoError(t, ensemble.CanCut())
	e := ensemble.ForTestConfig(t, ensemble.Config{Servers: 3, Networks: true})
	leader, err := e.Leader(t.Context())
	require.NoError(t, err)
	var follower *ensemble.Server
	for _, s := range e.Servers() {
		if s != leader {
			follower = s
		}
	}

	require.NoError(t, e.Cut(nil, leader))
	require.NoError(t, e.Cut(nil, leader))
	require.NoError(t, e.Heal(nil, leader))
	_, err = soon(t, leader)
	require.ErrorIs(t, err, context.DeadlineExceeded, "what clients ask, still")
	_, err = soon(t, follower)
	require.NoError(t, err, "others are not cut off")
	require.NoError(t, e.Heal(nil, leader))
	require.NoError(t, e.Cut(leader, nil))
	_, err = soon(t, leader)
	require.ErrorIs(t, err, context.DeadlineExceeded, "what clients are answered")
	require.NoError(t, e.Heal(leader, nil))
	again, err := e.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, leader, again, "the servers were not cut off from each other")

	require.NoError(t, e.Cut(leader, follower))
	require.Eventually(t, func() bool { _, err := soon(t, follower); return err != nil }, time.Minute, time.Second, "it notices")
	require.NoError(t, e.Heal(leader, follower))
	require.Eventually(t, func() bool { _, err := soon(t, follower); return err == nil }, time.Minute, time.Second)
}

// soon is the mode of a server, if it tells it soon.
func soon(t *testing.T, s *ensemble.Server) (ensemble.Mode, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	return s.Mode(ctx)
}

func TestAClientReachesServersInNetworksOfTheirOwn(t *testing.T) {
	if err := ensemble.CanCut(); errors.Is(err, ensemble.ErrNoNetwork) {
		t.Skip(err)
	}
	e := ensemble.ForTestConfig(t, ensemble.Config{Networks: true})
	cmd := exec.Command("bash", "-c", "exec 3<>/dev/tcp/"+strings.Replace(e.Connect(), ":", "/", 1)+"; printf ruok >&3; cat <&3")
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, e.StartClient(cmd))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "imok", out.String())
}
