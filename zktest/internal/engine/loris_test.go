package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// drip sends bytes one at a time, with a pause before each, for as long as the server takes them; done waits for
// that.
func (w *rawClient) drip(data []byte, pause time.Duration) (done func()) {
	var g sync.WaitGroup
	g.Go(func() {
		for i := range data {
			time.Sleep(pause)
			if _, err := w.nc.Write(data[i : i+1]); err != nil {
				return
			}
		}
	})
	return g.Wait
}

// A real server drops such connections 10 to 20 s after their last byte, so one that sends a byte now and
// then is never dropped there.
func TestAHandshakeIsOverAtItsDeadlineHoweverTheBytesCome(t *testing.T) {
	hello := connectFrame(4*time.Second, 0, nil, 0)
	for name, c := range map[string]struct{ at, dripped []byte }{
		"nothing at all":                {nil, nil},
		"half of the length":            {hello[:2], nil},
		"the length":                    {hello[:4], nil},
		"the length of the largest":     {[]byte{0x00, 0x0f, 0xff, 0xff}, nil},
		"all but the last byte":         {hello[:len(hello)-1], nil},
		"half of a four-letter word":    {[]byte("ru"), nil},
		"a byte each second":            {nil, hello},
		"a byte each second, after six": {hello[:6], hello[6:]},
		"a large frame by the byte":     {[]byte{0x00, 0x0f, 0xff, 0xff}, make([]byte, 100)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *Server) {
				w := dial(t, s)
				begin := time.Now()
				if c.at != nil {
					w.write(c.at)
				}
				defer w.drip(c.dripped, time.Second)()
				w.requireClosed()
				require.Equal(t, 10*time.Second, time.Since(begin))
				require.Empty(t, s.Sessions())
			})
		})
	}
}

func TestAHandshakeMayTakeAllTheTimeThereIs(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := dial(t, s)
		hello := connectFrame(4*time.Second, 0, nil, 0)
		defer w.drip(hello, 9*time.Second/time.Duration(len(hello)))()
		_, err := w.read()
		require.NoError(t, err)
		require.Len(t, s.Sessions(), 1)
	})
}

// As with a real server: what counts is the last request that came in completely.
func TestHalfARequestDoesNotKeepASessionAlive(t *testing.T) {
	for name, c := range map[string]struct {
		at    []byte
		pause time.Duration
	}{
		"a length and silence":            {[]byte{0x00, 0x0f, 0xff, 0xff}, 0},
		"a byte each 100 ms":              {[]byte{0x00, 0x0f, 0xff, 0xff}, 100 * time.Millisecond},
		"half of a length":                {[]byte{0, 0}, 0},
		"a ping without its last byte":    {[]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0}, 0},
		"a whole ping, and half of a set": {[]byte{0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 11, 0, 0, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
				w := join(t, s, 4*time.Second)
				w.create("/e", nil, wire.FlagEphemeral)
				begin := time.Now()
				w.write(c.at)
				if c.pause > 0 {
					defer w.drip(make([]byte, 1000), c.pause)()
				}
				for {
					if _, err := w.read(); err != nil {
						break
					}
				}
				require.Equal(t, 5*time.Second, time.Since(begin), "the first tick after its timeout")
				require.Empty(t, s.Sessions())
				_, ok := s.Node("/e")
				require.False(t, ok)
			})
		})
	}
}

func TestAPeerThatDoesNotTakeItsLastRepliesIsLeftAtTheDeadline(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		word := dial(t, s)
		word.write([]byte("srvr")) // and nobody reads the answer
		goodbye := join(t, s, 4*time.Second)
		goodbye.send(wire.OpClose, nil)
		time.Sleep(10*time.Second - time.Nanosecond)
		require.Equal(t, 2, connections(s))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Zero(t, connections(s))
	})
}
