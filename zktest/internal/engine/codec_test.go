package engine

import (
	"bytes"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestAnAnnouncedFrameIsNotAllocatedBeforeItArrives(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		_, err := readFrame(bytes.NewReader([]byte("short")), 1<<20-1, 1<<20-1)
		require.Error(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
	_, err := readFrame(bytes.NewReader(nil), 1<<20, 1<<20-1)
	require.ErrorIs(t, err, errFrameSize)
	_, err = readFrame(bytes.NewReader(nil), -1, 1<<20-1)
	require.ErrorIs(t, err, errFrameSize)
	big := bytes.Repeat([]byte("x"), 100_000)
	got, err := readFrame(bytes.NewReader(big), 100_000, 1<<20-1)
	require.NoError(t, err)
	require.Equal(t, big, got)
}

// allOps are all operations that have a name, and some that have none, in order.
var allOps = append(wire.Ops(), wire.OpError, wire.OpCreateSession, 99)

func drain(c net.Conn) {
	buf := make([]byte, 4096)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
	}
}

func TestEveryOperationWithAnArbitraryBodyIsAnsweredOrCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		for _, op := range allOps {
			for n := range 40 {
				w := join(t, s, 10*time.Second)
				w.send(op, func(e *wire.Encoder) { e.B = append(e.B, bytes.Repeat([]byte{byte(n)}, n)...) })
				frame, err := w.read()
				if err == nil {
					require.GreaterOrEqual(t, len(frame), 16, "op %v", op)
				}
				_ = w.nc.Close()
			}
		}
		w := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, w.create("/alive", nil, 0).code)
	})
}
