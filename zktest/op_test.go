package zktest_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// raw is a connection for what the client library cannot send.
type raw struct {
	t testing.TB
	net.Conn
}

func dialRaw(t testing.TB, srv *zktest.Server) raw {
	conn, err := srv.Dial("", "", 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := raw{t, conn}
	// Protocol version, last zxid, 10 s, no session, no password.
	c.exchange(append(append(make([]byte, 12), 0, 0, 0x27, 0x10), make([]byte, 12)...))
	return c
}

// exchange sends a frame and returns the next one.
func (c raw) exchange(body []byte) []byte {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	require.NoError(c.t, err)
	var head [4]byte
	_, err = io.ReadFull(c, head[:])
	require.NoError(c.t, err)
	answer := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err = io.ReadFull(c, answer)
	require.NoError(c.t, err)
	return answer
}

// request sends an operation and returns the code of the answer.
func (c raw) request(op int32, body ...byte) int32 {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 7), uint32(op))
	return int32(binary.BigEndian.Uint32(c.exchange(append(head, body...))[12:]))
}

func TestOperationsThatFewClientsHaveAreCountedAndCanBeIntercepted(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.WithLeftovers())
	c := dialRaw(t, srv)
	root := []byte{0, 0, 0, 1, '/'}
	for op, want := range map[int32]zktest.Op{
		103: zktest.GetEphemerals, 104: zktest.GetAllChildrenNumber, 107: zktest.WhoAmI,
	} {
		require.Zero(t, c.request(op, root...))
		require.Equal(t, 1, srv.RequestsBy(want), want)
		srv.Intercept(zktest.On(want, "**").Times(1).Error(zktest.CodeBadVersion))
		require.EqualValues(t, -103, c.request(op, root...), want)
	}
	require.Equal(t, 6, srv.Requests())
	require.EqualValues(t, -123, c.request(16, make([]byte, 20)...), "reconfig is disabled")
	require.Equal(t, 1, srv.RequestsBy(zktest.Reconfig))
	require.Zero(t, c.request(102, 0, 0, 0, 0))
	require.Equal(t, 1, srv.RequestsBy(zktest.SetAuth), "a SASL token counts as credentials")
	require.Equal(t, 7, srv.Requests(), "which no caller asks for")
	log := srv.Log()
	require.Contains(t, log[len(log)-2].String(), " reconfig ")
	require.WithinDuration(t, time.Now(), log[0].Time, time.Minute)
}
