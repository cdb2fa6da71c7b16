package zkconn

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever sets a watch and then reads has set the watch before he reads, whoever else is writing meanwhile.
func TestRequestsGoOutInTheOrderInWhichTheyWereSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		w := newWire(client, sessionOf(10*time.Second), nil, "zk", time.Time{})
		w.open = true
		w.writing <- struct{}{} // somebody is in the middle of a frame
		const n = 5
		for op := range int32(n) {
			w.send(&sentRequest{op: op, end: func([]byte, error) {}}, nil)
		}
		synctest.Wait()
		<-w.writing
		w.send(&sentRequest{op: n, end: func([]byte, error) {}}, nil)
		for op := range int32(n + 1) {
			frame := make([]byte, 12)
			_, err := io.ReadFull(server, frame)
			require.NoError(t, err)
			require.Equal(t, op, int32(binary.BigEndian.Uint32(frame[8:])))
			require.Equal(t, firstOwn+1+op, int32(binary.BigEndian.Uint32(frame[4:])))
		}
		synctest.Wait()
		require.Empty(t, w.backlog)
	})
}

// An answer that skips a request tells that the request, or its answer, was lost on the way.
func TestAnAnswerThatSkipsARequestEndsTheConnection(t *testing.T) {
	client, server := net.Pipe()
	defer server.Close()
	w := newWire(client, sessionOf(10*time.Second), nil, "zk", time.Time{})
	w.open = true
	var outcomes []error
	for op := range int32(3) {
		r := &sentRequest{op: opDelete, beat: op == 1, end: func(_ []byte, err error) { outcomes = append(outcomes, err) }}
		_, ok := w.expect(r)
		require.True(t, ok)
	}
	require.Equal(t, []int32{firstOwn + 1, firstOwn + 3}, w.order, "the heartbeat may overtake")
	err := w.replied(answerFrame{xid: firstOwn + 3})
	require.ErrorContains(t, err, "before those that were sent earlier")
	require.Len(t, outcomes, 1)
	require.True(t, Unknown(outcomes[0]))
}
