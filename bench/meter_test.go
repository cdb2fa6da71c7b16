package bench

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// frame is a request as it stands in the stream.
func frame(op int32, body int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+body))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	return append(b, make([]byte, body)...)
}

func TestRequestsAreFoundHoweverTheStreamIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ops := rapid.SliceOf(rapid.Int32Range(-11, 110)).Draw(t, "ops")
		stream := frame(0, 36) // opens the session
		for _, op := range ops {
			stream = append(stream, frame(op, rapid.IntRange(0, 50).Draw(t, "body"))...)
		}
		var f frames
		var found []int32
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "cut")
			f.feed(stream[:n], func(_, op int32) { found = append(found, op) })
			stream = stream[n:]
		}
		require.Equal(t, len(ops), len(found))
		if len(ops) > 0 {
			require.Equal(t, ops, found)
		}
	})
}

func TestAReplyThatIsLostWithItsConnectionIsNotAwaited(t *testing.T) {
	m := &Meter{}
	near, far := net.Pipe()
	c := m.Wrap(near)
	go func() { _, _ = io.Copy(io.Discard, far) }()
	for _, f := range [][]byte{frame(0, 36), frame(1, 8), frame(1, 8)} {
		_, err := c.Write(f)
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, m.unanswered())
	require.NoError(t, c.Close())
	require.Zero(t, m.unanswered())
	_ = c.Close()
	require.Zero(t, m.unanswered())
}

func TestRubbishIsNoDanger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f frames
		f.feed(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), func(_, _ int32) {})
	})
}
