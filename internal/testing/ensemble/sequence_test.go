package ensemble_test

import (
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

const lastSequence = 2147483647

// sequential creates an ephemeral sequential node and returns the number at the end of its name.
func sequential(conn *zk.Conn, prefix string) (string, error) {
	path, err := conn.Create(prefix, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return "", err
	}
	return path[len(prefix):], nil
}

// quiet creates one child after the other, so that no two are in flight together.
func quiet(t testing.TB, conn *zk.Conn, prefixes ...string) []string {
	t.Helper()
	var numbers []string
	for _, prefix := range prefixes {
		n, err := sequential(conn, prefix)
		require.NoError(t, err)
		numbers = append(numbers, n)
	}
	return numbers
}

func TestAPatchedServerNumbersChildrenFromThereAndRepeatsTheLastNumber(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	s := e.Servers()[0]
	create(t, connect(t, e.Connect()), "/p")
	require.NoError(t, s.Stop())
	require.NoError(t, s.PatchSequence(t.Context(), "/p", 2147483640))
	require.NoError(t, s.Start(t.Context()))

	conn := connect(t, e.Connect())
	var want, prefixes []string
	for n := 2147483640; n <= lastSequence; n++ {
		prefixes, want = append(prefixes, "/p/n-"), append(want, fmt.Sprint(n))
	}
	require.Equal(t, want, quiet(t, conn, prefixes...))

	// The counter stays where it is: under another prefix the same number again, under the same
	// prefix the same name, which is taken.
	require.Equal(t, []string{"2147483647", "2147483647"}, quiet(t, conn, "/p/a-", "/p/b-"))
	_, err := sequential(conn, "/p/n-")
	require.ErrorIs(t, err, zk.ErrNodeExists)
}

func TestCreatesInFlightTogetherPassTheLastNumberIntoTheNegativeOnes(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	create(t, connect(t, e.Connect()), "/p")
	require.NoError(t, e.SetSequence(t.Context(), "/p", lastSequence))
	conn := connect(t, e.Connect())

	// The operations of one transaction are numbered before any of them is applied, exactly as the
	// requests of several clients are that reach the leader together.
	op := func(prefix string) *zk.CreateRequest {
		return &zk.CreateRequest{Path: prefix, Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeral | zk.FlagSequence}
	}
	results, err := conn.Multi(op("/p/a-"), op("/p/b-"), op("/p/c-"))
	require.NoError(t, err)
	require.Equal(t, "/p/a-2147483647", results[0].String)
	require.Equal(t, "/p/b--2147483648", results[1].String)
	require.Equal(t, "/p/c--2147483647", results[2].String)
	require.Equal(t, []string{"2147483647"}, quiet(t, conn, "/p/d-"))
}

func TestAllServersOfAnEnsembleCanBePatchedAndAgreeAfterwards(t *testing.T) {
	e := ensemble.ForTest(t, 3)
	create(t, connect(t, e.Connect()), "/p")
	for _, s := range e.Servers() { // a majority has it; all shall, before they are stopped
		_, err := connect(t, s.Addr()).Sync("/p")
		require.NoError(t, err)
	}
	require.NoError(t, e.SetSequence(t.Context(), "/p", 2147483640))
	require.Equal(t, []string{"2147483640", "2147483641"}, quiet(t, connect(t, e.Connect()), "/p/n-", "/p/n-"))

	// Whoever leads next counts on from there.
	leader, err := e.Leader(t.Context())
	require.NoError(t, err)
	require.NoError(t, leader.Kill())
	_, err = e.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"2147483642"}, quiet(t, connect(t, e.Connect()), "/p/n-"))
}

func TestAPatchKeepsSessionsAndTheirEphemeralNodes(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	conn := connect(t, e.Connect())
	session := conn.SessionID()
	create(t, conn, "/p")
	require.Equal(t, []string{"0000000000"}, quiet(t, conn, "/p/n-"))
	require.NoError(t, e.SetSequence(t.Context(), "/p", 7))

	other := connect(t, e.Connect())
	found, stat, err := other.Exists("/p/n-0000000000")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, session, stat.EphemeralOwner)
	require.Equal(t, []string{"0000000007"}, quiet(t, other, "/p/n-"))
	mntr, err := e.Servers()[0].Mntr(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0", mntr["zk_digest_mismatches_count"])
}

func TestAPatchThatCannotBeDoneIsRefused(t *testing.T) {
	e := ensemble.ForTest(t, 1)
	s := e.Servers()[0]
	require.ErrorContains(t, s.PatchSequence(t.Context(), "/p", 1), "already running")
	require.NoError(t, s.Stop())
	require.ErrorContains(t, s.PatchSequence(t.Context(), "/p", 1), "no node /p")
	require.NoError(t, s.Start(t.Context()), "a refused patch does no harm")
}
