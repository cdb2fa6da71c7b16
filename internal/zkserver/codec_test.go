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

	"github.com/go-menagerie/menagerie/internal/jute"
)

func TestEveryRecordSurvivesEncodingAndDecoding(t *testing.T) {
	e := &Encoder{}
	st := Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}
	acl := []ACL{{PermRead, ID{"world", "anyone"}}, {PermAll, ID{"digest", "u:h"}}}
	e.Int32(-7)
	e.Int64(1 << 40)
	e.Bool(true)
	e.Buffer(nil)
	e.Buffer([]byte{})
	e.Text("ä")
	e.Texts([]string{"a", ""})
	e.ACL(acl)
	e.Stat(st)
	d := NewDecoder(e.B)
	require.EqualValues(t, -7, d.Int32())
	require.EqualValues(t, 1<<40, d.Int64())
	require.True(t, d.Bool())
	require.Nil(t, d.Buffer())
	require.Equal(t, []byte{}, d.Buffer())
	require.Equal(t, "ä", d.Text())
	require.Equal(t, []string{"a", ""}, d.Texts())
	require.Equal(t, acl, d.ACL())
	require.Equal(t, st, decodeStat(d))
	require.NoError(t, d.Err())
	require.Empty(t, d.Rest())
}

func TestTheDecoderNeverReadsPastItsFrameNorBelievesALength(t *testing.T) {
	for _, frame := range [][]byte{
		nil, {0}, {0, 0, 0, 9}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xfe}, {0, 0, 0, 2, 1},
	} {
		for name, read := range map[string]func(*Decoder){
			"string":  func(d *Decoder) { d.Text() },
			"buffer":  func(d *Decoder) { d.Buffer() },
			"int64":   func(d *Decoder) { d.Int64() },
			"strings": func(d *Decoder) { d.Texts(); d.Int32() },
			"acl":     func(d *Decoder) { d.ACL(); d.Int32() },
		} {
			d := NewDecoder(frame)
			read(d)
			require.ErrorIs(t, d.Err(), jute.ErrMalformed, "%s of %x", name, frame)
			require.Zero(t, d.Int32(), "a failed decoder reads zeros")
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

// allOps are all operations that have a name, and some that have none, in order.
var allOps = append(slices.Sorted(maps.Keys(opNames)), opError, opCreateSession, 99)

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
				w.send(op, func(e *Encoder) { e.B = append(e.B, bytes.Repeat([]byte{byte(n)}, n)...) })
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
