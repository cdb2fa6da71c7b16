package zkserver

import (
	"bytes"
	"net"
	"runtime"
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

// wireOps are all operations with a body.
var wireOps = []Op{
	OpCreate, OpDelete, OpExists, OpGetData, OpSetData, OpGetACL, OpSetACL, OpGetChildren, OpSync, OpPing,
	OpGetChildren2, OpCheck, OpMulti, OpCreate2, OpCreateContainer, OpDeleteContainer, OpCreateTTL, OpMultiRead,
	OpAuth, OpSetWatches, OpSetWatches2, OpAddWatch, OpCheckWatches, OpRemoveWatches, OpClose, OpConnect, opError, opCreateSession, 99,
}

func FuzzDecodeCall(f *testing.F) {
	e := &encoder{}
	createBody("/a", []byte("x"), OpenACL(), 3)(e)
	f.Add(1, e.b)
	m := &encoder{}
	multiBody(part(OpCreate, createBody("/a", nil, OpenACL(), 0)), part(OpCheck, versionBody("/a", 1)))(m)
	f.Add(14, m.b)
	f.Fuzz(func(t *testing.T, op int, body []byte) {
		c := decodeCall(Op(op), bytes.Clone(body))
		if c.bad {
			return
		}
		size := len(c.Path) + len(c.Data)
		for _, p := range c.Paths() {
			size += len(p)
		}
		require.LessOrEqual(t, size, 2*len(body)+1, "a call holds no more than its frame")
		decodeConnect(body)
	})
}

// FuzzSession plays arbitrary bytes to a server, behind a proper handshake or instead of
// it. Nothing may panic, and the server must go on serving others.
func FuzzSession(f *testing.F) {
	f.Add(false, []byte("ruok"))
	f.Add(true, []byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 11})
	e := newFrame(64)
	e.int32(1)
	e.int32(int32(OpMulti))
	multiBody(part(OpCreate, createBody("/a", nil, OpenACL(), 3)))(e)
	f.Add(true, e.frame())
	f.Fuzz(func(t *testing.T, greet bool, stream []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, Config{})
			w := dial(t, s)
			if greet {
				w.connect(4*time.Second, 0, nil, 0)
			}
			go drain(w.nc)
			_, _ = w.nc.Write(stream) // the server may close before it has read everything
			synctest.Wait()
			_ = w.nc.Close()
			other := join(t, s, 10*time.Second)
			require.Equal(t, CodeOK, other.create("/alive", nil, 0).code, "the server still serves")
		})
	})
}

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
