package zksync_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// hostile is a server that answers with bytes that a test chose.
type hostile struct {
	greeting []byte                 // answers a handshake
	reply    func(xid int32) []byte // answers anything but a ping
	dials    atomic.Int32
}

func (h *hostile) dial(context.Context, string, string) (net.Conn, error) {
	h.dials.Add(1)
	client, server := net.Pipe()
	go h.serve(server)
	return client, nil
}

func (h *hostile) serve(c net.Conn) {
	defer c.Close()
	for first := true; ; first = false {
		var n [4]byte
		if _, err := io.ReadFull(c, n[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(n[:]))
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		answer := h.greeting
		if !first {
			xid := int32(binary.BigEndian.Uint32(body))
			if answer = h.reply(xid); xid == -2 {
				answer = header(-2, 0)
			}
		}
		if answer == nil {
			return // the connection ends
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func header(xid, code int32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	return frame(append(b, body...))
}

func greeting(timeout int32, id int64, passwdLen int32) []byte {
	b := make([]byte, 4)
	b = binary.BigEndian.AppendUint32(b, uint32(timeout))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, uint32(passwdLen))
	return frame(append(b, make([]byte, 16)...))
}

func words(n ...uint32) []byte {
	var b []byte
	for _, w := range n {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

const whatever = 0x7fffffff

func TestAcceptance138AHostileHandshakeIsAnErrorThatNamesTheServer(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"huge length":              words(whatever),
		"negative length":          words(0xffffffff),
		"empty":                    words(0),
		"truncated":                greeting(10000, 7, 16)[:20],
		"garbage":                  []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"huge password":            greeting(10000, 7, whatever),
		"negative password":        greeting(10000, 7, -7),
		"no timeout":               greeting(0, 7, 16),
		"negative timeout":         greeting(-1, 7, 16),
		"no session for a new one": greeting(10000, 0, 16),
		"silence":                  {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hostile{greeting: bytes, reply: func(int32) []byte { return nil }}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				start := time.Now()
				_, err := zksync.Connect(ctx, "evil:2181", zksync.WithDialer(h.dial))
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "evil:2181")
				require.LessOrEqual(t, time.Since(start), 20*time.Second+100*time.Millisecond)
				require.Less(t, h.dials.Load(), int32(200), "dialled in a tight loop")
				require.Positive(t, h.dials.Load())
			})
		})
	}
}

func TestAcceptance138HostileRepliesAreErrorsNeverPanics(t *testing.T) {
	for name, reply := range map[string]func(xid int32) []byte{
		"huge length":        func(int32) []byte { return words(whatever) },
		"negative length":    func(int32) []byte { return words(0xfffffff0) },
		"too short":          func(xid int32) []byte { return frame(words(uint32(xid))) },
		"truncated":          func(xid int32) []byte { return header(xid, 0, 0, 0, 0, 9)[:10] },
		"unknown xid":        func(int32) []byte { return header(4711, 0) },
		"negative xid":       func(int32) []byte { return header(-77, 0) },
		"hostile string":     func(xid int32) []byte { return header(xid, 0, words(1, 0, whatever, whatever)...) },
		"hostile count":      func(xid int32) []byte { return header(xid, 0, words(whatever, whatever)...) },
		"empty body":         func(xid int32) []byte { return header(xid, 0) },
		"garbage event":      func(int32) []byte { return header(-1, 0, words(2, 3, whatever)...) },
		"unknown error code": func(xid int32) []byte { return header(xid, -9999) },
		"silence":            func(int32) []byte { return []byte{} },
		"the end":            func(int32) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hostile{greeting: greeting(10000, 7, 16), reply: reply}
				s, err := zksync.Connect(t.Context(), "evil:2181", zksync.WithDialer(h.dial))
				require.NoError(t, err)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				start := time.Now()
				_, err = zksync.NewMutex(s, "/locks/a").LockContext(ctx)
				require.Error(t, err)
				require.LessOrEqual(t, time.Since(start), 20*time.Second+100*time.Millisecond)
				runtime.ReadMemStats(&after)
				require.Less(t, h.dials.Load(), int32(400), "dialled in a tight loop")
				// Each connection of the client library has buffers of 3 MB.
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(h.dials.Load()+1)*(8<<20))
				require.NoError(t, s.Close())
			})
		})
	}
}
