package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestTimeoutsAreClampedToTicks(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		for asked, want := range map[time.Duration]time.Duration{
			0: 2 * time.Second, 5 * time.Second: 5 * time.Second, time.Hour: 20 * time.Second, -time.Second: 2 * time.Second,
		} {
			require.Equal(t, want, join(t, s, asked).took, "asked for %v", asked)
		}
	})
}

func TestASessionExpiresAtTheFirstTickBoundaryAfterItsTimeout(t *testing.T) {
	for _, c := range []struct{ heard, expires time.Duration }{
		{0, 6 * time.Second}, // exactly on a boundary counts as past it
		{time.Millisecond, 6 * time.Second},
		{999 * time.Millisecond, 6 * time.Second},
		{time.Second, 7 * time.Second},
		{2500 * time.Millisecond, 8 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var expired time.Duration
			s := newServer(t, Config{Tick: time.Second, OnExpired: func(_ int64, at time.Time) { expired = at.Sub(start) }})
			w := join(t, s, 5*time.Second)
			w.create("/e", nil, wire.FlagEphemeral)
			time.Sleep(c.heard)
			w.send(wire.OpPing, nil)
			require.Equal(t, wire.XidPing, w.next().xid)
			require.Equal(t, start.Add(c.expires), s.Sessions()[0].Expires)
			w.requireClosed() // virtual time runs to the expiry
			require.Equal(t, c.expires, expired)
			require.Equal(t, c.expires, time.Since(start))
			_, ok := s.Node("/e")
			require.False(t, ok)
			require.Empty(t, s.Sessions())
		})
	}
}

func TestAnythingThatArrivesKeepsASessionAlive(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 4*time.Second)
		for range 20 {
			time.Sleep(3 * time.Second)
			w.do(wire.OpExists, watchBody("/", false))
		}
		require.Len(t, s.Sessions(), 1)
	})
}

func TestASessionMovesToANewConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/e", nil, wire.FlagEphemeral)
		again := dial(t, s)
		again.connect(8*time.Second, w.id, w.pass, 0)
		require.Equal(t, w.id, again.id)
		require.Equal(t, 8*time.Second, again.took)
		w.requireClosed()
		require.Equal(t, again.id, again.stat("/e").EphemeralOwner)

		thief := dial(t, s)
		thief.connect(8*time.Second, w.id, make([]byte, 16), 0)
		require.Zero(t, thief.id)
		require.Zero(t, thief.took)
		thief.requireClosed()
		again.requireClosed() // the real server looks at the password too late, too
		require.Len(t, s.Sessions(), 1)

		unknown := dial(t, s)
		unknown.connect(8*time.Second, 4711, password(4711), 0)
		require.Zero(t, unknown.id)
		unknown.requireClosed()
	})
}

func TestAClientThatHasSeenMoreThanTheServerIsTurnedAway(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := dial(t, s)
		e := wire.NewFrame(64)
		e.Int32(0)
		e.Int64(1)
		e.Int32(10000)
		e.Int64(0)
		e.Buffer(nil)
		w.write(e.Frame())
		w.requireClosed()
		require.Empty(t, s.Sessions())
	})
}

func TestFramesThatCannotBeClosesTheConnection(t *testing.T) {
	for name, head := range map[string][]byte{
		"negative length": {0xff, 0xff, 0xff, 0xff},
		"one megabyte":    {0x00, 0x10, 0x00, 0x00},
		"empty":           {0, 0, 0, 0},
		"no operation":    {0, 0, 0, 4, 0, 0, 0, 1},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			w := join(t, s, 10*time.Second)
			w.write(head)
			w.requireClosed()
			require.Len(t, s.Sessions(), 1, name)
		})
	}
}

func TestTheLargestRequestIsOneMegabyteLessOne(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		overhead := len(func() []byte {
			e := wire.NewFrame(0)
			e.Int64(0)
			createBody("/a", nil, wire.OpenACL(), 0)(e)
			return e.B[4:]
		}())
		require.Equal(t, wire.CodeOK, w.create("/a", make([]byte, 1<<20-1-overhead), 0).code)
		go func() { // the server closes after the length, before it has read the rest
			e := wire.NewFrame(0)
			e.Int32(9)
			e.Int32(int32(wire.OpCreate))
			createBody("/b", make([]byte, 1<<20-overhead), wire.OpenACL(), 0)(e)
			_, _ = w.nc.Write(e.Frame())
		}()
		w.requireClosed()
	})
}

func TestAnUnknownOperationIsRefusedAndTheConnectionClosed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		r := w.do(99, nil)
		require.Equal(t, wire.CodeUnimplemented, r.code)
		require.EqualValues(t, -1, r.zxid)
		w.requireClosed()
	})
}

func TestASilentConnectionIsDroppedAtTheHandshakeDeadline(t *testing.T) {
	for name, start := range map[string][]byte{"nothing": nil, "half a length": {0, 0}, "half a request": {0, 0, 0, 44, 0, 0}} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			w := dial(t, s)
			begin := time.Now()
			if start != nil {
				w.write(start)
			}
			w.requireClosed()
			require.Equal(t, 10*time.Second, time.Since(begin), name)
		})
	}
}

func TestAPeerThatDoesNotReadCannotHoldUpTheServer(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		lazy, busy := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		busy.create("/n", nil, 0)
		for range 500 {
			lazy.send(wire.OpGetData, watchBody("/n", true)) // answers pile up
		}
		require.Equal(t, wire.CodeOK, busy.do(wire.OpSetData, setBody("/n", []byte("x"), -1)).code)
		require.Equal(t, int32(1), busy.stat("/n").Version)
	})
}

func TestPasswordsAndSessionIdsLookLikeTheRealOnes(t *testing.T) {
	require.Len(t, password(1), 16)
	require.Equal(t, password(77), password(77))
	require.NotEqual(t, password(77), password(78))
	id := firstSessionID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 1)
	require.Equal(t, int64(1), id>>56)
}
