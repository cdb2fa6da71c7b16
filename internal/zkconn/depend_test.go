package zkconn

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What is granted while all is well is not lost, however long ago the session had leader proof: the next proof comes before the
// last one runs out. Here a follower answers reads at once, and the leader answers after a while.
func TestWhatIsGrantedWheneverAllIsWellIsNotLost(t *testing.T) {
	const steps = 200
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second} {
		for _, trip := range []time.Duration{0, time.Millisecond, 60 * time.Millisecond, timeout / 25} {
			for _, held := range []time.Duration{0, time.Second} {
				t.Run(fmt.Sprintf("T=%v, leader %v away, held %v", timeout, trip, held), func(t *testing.T) {
					t.Parallel()
					for idle := time.Duration(0); idle < timeout; idle += timeout / steps {
						synctest.Test(t, func(t *testing.T) { keeps(t, timeout, trip, held, idle) })
					}
				})
			}
		}
	}
}

// keeps has a session that held something for a while, if it did, hold again after another while.
func keeps(t *testing.T, timeout, trip, held, idle time.Duration) {
	p := newPeer(t)
	c := p.open(timeout)
	defer closeAll(p, c)
	conn := <-p.dials
	_, err := readFrame(conn, 1024)
	require.NoError(t, err)
	time.Sleep(trip) // the leader takes part in the handshake
	p.write(conn, connectReplyBody(1, timeout))
	serveAfter(conn, trip)
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	if held > 0 {
		end, err := e.Depend(t.Context())
		require.NoError(t, err)
		time.Sleep(held)
		end()
	}
	time.Sleep(idle)
	_, _, err = e.Exists(t.Context(), "/a") // a read, as before most grants
	require.NoError(t, err)
	end, err := e.Depend(t.Context())
	require.NoError(t, err)
	defer end()
	granted := time.Now()
	select {
	case <-e.Over():
		t.Errorf("granted after %v, lost %v later: %v", idle, time.Since(granted), e.Cause())
	case <-time.After(2 * timeout):
	}
}

// serveAfter answers everything with success: what a follower answers at once, and what the leader answers after a while. Both
// stay in order.
func serveAfter(conn net.Conn, leader time.Duration) {
	type due struct {
		at    time.Time
		reply []byte
	}
	line, ended := make(chan due, 1000), make(chan struct{})
	go func() {
		defer conn.Close()
		for next := range line {
			select {
			case <-time.After(time.Until(next.at)):
			case <-ended: // by Close, which does not wait for answers
				return
			}
			if write(conn, next.reply) != nil {
				return
			}
		}
	}()
	go func() {
		defer close(ended)
		defer close(line)
		for {
			b, err := readFrame(conn, maxFrame)
			if err != nil {
				return
			}
			at := time.Now()
			op, reply := succeed(b)
			if op == opSync {
				at = at.Add(leader)
			}
			line <- due{at, reply}
		}
	}()
}
