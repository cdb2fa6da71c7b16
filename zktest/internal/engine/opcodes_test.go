package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestOperationsThatARealServerDoesNotServeAreRefusedAndTheConnectionClosed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		first := join(t, s, 10*time.Second)
		for _, op := range []wire.Op{wire.OpNotification, 10, 23, 24, 25, 50, 99, 108, 1000, wire.OpError, -2, -3, -4, -12, 1<<31 - 1, wire.OpCreateSession} {
			w := join(t, s, 10*time.Second)
			before := s.Zxid()
			r := w.do(op, nil)
			require.Equal(t, wire.CodeUnimplemented, r.code, op)
			require.EqualValues(t, -1, r.zxid, op)
			w.requireClosed()
			require.Equal(t, before, s.Zxid(), op)
			back := dial(t, s)
			back.connect(10*time.Second, w.id, w.pass, 0)
			require.Equal(t, w.id, back.id, "the session lives on")
		}
		first.stat("/")
	})
}

func TestReconfigIsDisabled(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		before := s.Zxid()
		r := w.do(wire.OpReconfig, func(e *wire.Encoder) { e.Text("server.1=a"); e.Int32(-1); e.Text(""); e.Int64(-1) })
		require.Equal(t, wire.CodeReconfigDisabled, r.code)
		require.Equal(t, before+1, s.Zxid())
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpReconfig, nil).code)
		require.Equal(t, before+1, s.Zxid(), "the one malformed write that costs no zxid")
	})
}

func TestASASLTokenIsAnsweredWithNone(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		r := w.do(wire.OpSASL, func(e *wire.Encoder) { e.Buffer([]byte("token")) })
		require.Equal(t, wire.CodeOK, r.code)
		require.Zero(t, r.zxid)
		require.EqualValues(t, -1, r.body.Int32())
		require.Empty(t, r.body.Rest())
		for name, body := range map[string]func(*wire.Encoder){
			"none": nil, "null": func(e *wire.Encoder) { e.Int32(-1) }, "negative": func(e *wire.Encoder) { e.Int32(-5) },
			"short": func(e *wire.Encoder) { e.Int32(100) },
		} {
			t.Log(name)
			w := join(t, s, 10*time.Second)
			w.send(wire.OpSASL, body)
			w.requireClosed()
		}
	})
}

func TestAConnectRequestWithinASessionIsAnsweredAsOneAndCountsForTheTimeout(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		before := s.Zxid()
		w.send(wire.OpConnect, func(e *wire.Encoder) { e.Int32(3000) })
		frame, err := w.read()
		require.NoError(t, err)
		d := wire.NewDecoder(frame)
		require.Zero(t, d.Int32())
		require.EqualValues(t, 10_000, d.Int32())
		require.Equal(t, w.id, d.Int64())
		require.Equal(t, w.pass, d.Buffer())
		require.False(t, d.Bool())
		require.Empty(t, d.Rest())
		require.Equal(t, before+1, s.Zxid())
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpConnect, nil).code)
		require.Equal(t, before+2, s.Zxid())

		w.send(wire.OpConnect, func(e *wire.Encoder) { e.Int32(3000) })
		_, err = w.read()
		require.NoError(t, err)
		time.Sleep(4*time.Second - time.Millisecond)
		synctest.Wait()
		require.Len(t, s.Sessions(), 1)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Empty(t, s.Sessions(), "until the next request, which asks for 10 s again")
	})
}

func TestWhatARequestCarriesBeyondItsEndIsIgnored(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		junk := func(body func(*wire.Encoder)) func(*wire.Encoder) {
			return func(e *wire.Encoder) { body(e); e.Text("junk") }
		}
		require.Equal(t, wire.CodeOK, w.do(wire.OpCreate, junk(createBody("/n", nil, wire.OpenACL(), 0))).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpGetEphemerals, junk(pathBody("/"))).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpGetAllChildrenNumber, junk(pathBody("/n"))).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpWhoAmI, junk(pathBody(""))).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpMulti, junk(multiBody(part(wire.OpDelete, versionBody("/n", 0))))).code)
	})
}
