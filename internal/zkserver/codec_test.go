package zkserver

import (
	"bytes"
	"maps"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryRecordSurvivesEncodingAndDecoding(t *testing.T) {
	e := &encoder{}
	st := Stat{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	acl := []ACL{{PermRead, ID{"world", "anyone"}}, {PermAll, ID{"digest", "u:h"}}}
	e.int32(-7)
	e.int64(1 << 40)
	e.bool(true)
	e.buffer(nil)
	e.buffer([]byte{})
	e.string("ä")
	e.strings([]string{"a", ""})
	e.acl(acl)
	e.stat(st)
	d := &decoder{b: e.b}
	require.EqualValues(t, -7, d.int32())
	require.EqualValues(t, 1<<40, d.int64())
	require.True(t, d.bool())
	require.Nil(t, d.buffer())
	require.Equal(t, []byte{}, d.buffer())
	require.Equal(t, "ä", d.string())
	require.Equal(t, []string{"a", ""}, d.strings())
	require.Equal(t, acl, d.acl())
	require.Equal(t, st, decodeStat(d))
	require.NoError(t, d.err)
	require.Empty(t, d.b)
}

func TestTheDecoderNeverReadsPastItsFrameNorBelievesALength(t *testing.T) {
	for _, frame := range [][]byte{
		nil, {0}, {0, 0, 0, 9}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xfe}, {0, 0, 0, 2, 1},
	} {
		for name, read := range map[string]func(*decoder){
			"string":  func(d *decoder) { d.string() },
			"buffer":  func(d *decoder) { d.buffer() },
			"int64":   func(d *decoder) { d.int64() },
			"strings": func(d *decoder) { d.strings(); d.int32() },
			"acl":     func(d *decoder) { d.acl(); d.int32() },
		} {
			d := &decoder{b: frame}
			read(d)
			require.ErrorIs(t, d.err, errMalformed, "%s of %x", name, frame)
			require.Zero(t, d.int32(), "a failed decoder reads zeros")
		}
	}
}

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

// wireOps are all operations that have a name, and some that have none, in order.
var wireOps = append(slices.Sorted(maps.Keys(opNames)), opError, opCreateSession, 99)

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
		for _, op := range wireOps {
			for n := range 40 {
				w := join(t, s, 10*time.Second)
				w.send(op, func(e *encoder) { e.b = append(e.b, bytes.Repeat([]byte{byte(n)}, n)...) })
				frame, err := w.read()
				if err == nil {
					require.GreaterOrEqual(t, len(frame), 16, "op %v", op)
				}
				_ = w.nc.Close()
			}
		}
		w := join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, w.create("/alive", nil, 0).code)
	})
}
