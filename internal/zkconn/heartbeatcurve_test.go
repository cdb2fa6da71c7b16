package zkconn_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// curveTimeout is the session timeout of the curve.
const curveTimeout = 15 * time.Second

// traffic counts the frames that clients write.
type traffic struct{ syncs, pings, others atomic.Int64 }

func (c *traffic) reset() { c.syncs.Store(0); c.pings.Store(0); c.others.Store(0) }

// countedConn counts the frames on one connection: each is one Write.
type countedConn struct {
	net.Conn
	*traffic
}

func (c countedConn) Write(b []byte) (int, error) {
	const opAt, opEnd = 8, 12 // behind the frame's length and the xid
	op := uint32(0)           // the handshake's
	if len(b) >= opEnd {
		op = binary.BigEndian.Uint32(b[opAt:opEnd])
	}
	switch op {
	case 9:
		c.syncs.Add(1)
	case 11:
		c.pings.Add(1)
	default:
		c.others.Add(1)
	}
	return c.Conn.Write(b)
}

// holder is a server and a session on a link with a round trip of trip, and the count of what the session sends.
func holder(t *testing.T, trip time.Duration) (*zktest.Server, *zksync.Session, *traffic) {
	srv := zktest.Run(t, zktest.WithLeftovers())
	sent := &traffic{}
	s, err := zksync.Connect(t.Context(), "zk1", zksync.WithTimeout(curveTimeout),
		zksync.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, address)
			return countedConn{c, sent}, err
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	srv.Delay(s.ID(), trip/2, trip/2)
	return srv, s, sent
}

// inTenTimeouts is what a session that holds a number of locks sends in ten timeouts.
func inTenTimeouts(t *testing.T, locks int, trip time.Duration) (syncs, pings int64) {
	synctest.Test(t, func(t *testing.T) {
		_, s, sent := holder(t, trip)
		for i := range locks {
			zksync.NewMutex(s, fmt.Sprintf("/locks/%d", i)).Lock()
		}
		time.Sleep(2*curveTimeout + curveTimeout/7)
		synctest.Wait()
		sent.reset()
		time.Sleep(10 * curveTimeout)
		syncs, pings = sent.syncs.Load(), sent.pings.Load()
		require.Zero(t, sent.others.Load())
	})
	return syncs, pings
}

// cutOff cuts the link of a holder at a phase of its heartbeats, and heals it after d. It reports whether
// the lease outlived that, and otherwise how long after the cut it ended.
func cutOff(t *testing.T, trip, phase, d time.Duration) (outlived bool, ended time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		srv, s, _ := holder(t, trip)
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(2*curveTimeout + phase)
		began := time.Now()
		heal := srv.Partition(s.ID())
		time.AfterFunc(d, heal)
		select {
		case <-l.Done():
			ended = time.Since(began)
		case <-time.After(d + 2*curveTimeout):
			outlived = true
		}
		heal()
		srv.Delay(s.ID(), 0, 0)
	})
	return outlived, ended
}

// phases is prime, so no two cuts fall on the same point between two heartbeats.
const phases = 53

// outage is, over all phases of a cut, when a lease ends at the earliest and at the latest if
// the link stays cut, and the longest cut that it always outlives. All in thousandths of the timeout.
func outage(t *testing.T, trip time.Duration) (first, last, outlived int) {
	part := func(d time.Duration) int { return int(1000 * d / curveTimeout) }
	first, outlived = 1000, 1000
	for i := range phases {
		phase := curveTimeout * time.Duration(i) / phases
		kept, ended := cutOff(t, trip, phase, curveTimeout)
		require.False(t, kept)
		first, last = min(first, part(ended)), max(last, part(ended))
		low, high := 0, outlived // a cut of low is outlived
		if kept, _ := cutOff(t, trip, phase, curveTimeout*time.Duration(high)/1000); kept {
			continue // so this phase is not the worst
		}
		for high-low > 1 {
			mid := (low + high) / 2
			if kept, _ := cutOff(t, trip, phase, curveTimeout*time.Duration(mid)/1000); kept {
				low = mid
			} else {
				high = mid
			}
		}
		outlived = low
	}
	return first, last, outlived
}

var curve = flag.Bool("curve", false, "TestHeartbeatCurve measures other numbers of heartbeats, too, and prints them (with -v)")

// TestHeartbeatCurve is the table of docs/guarantees/leases.md: what other numbers of heartbeats in a timeout would mean. Only the number
// in use is asserted. With a round trip of a quarter of the timeout, cuts and answers fall on the same instants, so the
// last digit differs from run to run.
func TestHeartbeatCurve(t *testing.T) {
	const near, far = time.Millisecond, curveTimeout / 4
	for _, trip := range []time.Duration{near, far} {
		for _, beats := range []time.Duration{16, 8, 6} {
			used := beats == 16 && trip == near
			if !used && !*curve {
				continue
			}
			zkconn.SetBeats(t, beats)
			syncs, pings := inTenTimeouts(t, 1, trip)
			first, last, outlived := outage(t, trip)
			t.Logf("T/%d, round trip %v: a session sends %.1f syncs and %.1f pings in a T; a lease ends %.3f to %.3f T after a cut, and outlives one of %.3f T",
				beats, trip, float64(syncs)/10, float64(pings)/10, float64(first)/1000, float64(last)/1000, float64(outlived)/1000)
			if used {
				require.Equal(t, []int64{160, 30}, []int64{syncs, pings})
				require.Equal(t, []int{575, 636, 574}, []int{first, last, outlived})
			}
		}
	}
}

func TestTheHeartbeatsOfASessionServeAThousandLocks(t *testing.T) {
	syncs, pings := inTenTimeouts(t, 1_000, time.Millisecond)
	require.EqualValues(t, 160, syncs)
	require.EqualValues(t, 30, pings)
}
