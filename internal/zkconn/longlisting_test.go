package zkconn

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// A queue of a hundred thousand is slow, but its listing must not end the sessions of all who wait.
func TestAListingOfAHundredThousandNamesIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		const n = 100_000
		body := listingBody(n)
		require.Greater(t, len(body), maxFrame)
		names := make(chan []string)
		go func() {
			got, _, err := e.Children(t.Context(), "/lock")
			require.NoError(t, err)
			names <- got
		}()
		xid, op, _ := s.next()
		require.EqualValues(t, opGetChildren2, op)
		s.reply(xid, 0, body)
		require.Len(t, <-names, n)
		require.NoError(t, e.Cause())
		s.close(c)
	})
}

// Nothing else is that long, nor is a listing without an end.
func TestAFrameThatIsLongerThanItsKindMayBeEndsTheSession(t *testing.T) {
	for name, how := range map[string]struct {
		ask  func(*testing.T, *Epoch)
		size uint32
	}{
		"data":    {func(t *testing.T, e *Epoch) { _, _, _ = e.Exists(t.Context(), "/node") }, maxFrame + 1},
		"listing": {func(t *testing.T, e *Epoch) { _, _, _ = e.Children(t.Context(), "/lock") }, maxListing + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				c, e, s := connectedTo(t, p)
				go how.ask(t, e)
				xid, _, _ := s.next()
				_, err := s.conn.Write(jute.AppendInt32(binary.BigEndian.AppendUint32(nil, how.size), xid))
				require.NoError(t, err)
				<-e.Over()
				require.ErrorContains(t, e.Cause(), "bytes (at most")
				s.close(c)
			})
		})
	}
}
