package zkconn

import (
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
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

// Servers do not bound a listing. One that is too long must not end all leases of the process, again in each session.
func TestAnAnswerThatIsTooLongFailsItsReadAndNothingElse(t *testing.T) {
	for name, ask := range map[string]func(*testing.T, *Epoch) error{
		"data":    func(t *testing.T, e *Epoch) error { _, _, err := e.Get(t.Context(), "/node"); return err },
		"listing": func(t *testing.T, e *Epoch) error { _, _, err := e.Children(t.Context(), "/node"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				c, e, s := connectedTo(t, p)
				connection, result := e.Connection(), make(chan error)
				go func() { result <- ask(t, e) }()
				xid, _, _ := s.next()
				s.reply(xid, 0, make([]byte, maxListing))
				require.ErrorIs(t, <-result, ErrTooLong)
				go func() { result <- ask(t, e) }() // the same connection goes on
				xid, _, _ = s.next()
				s.reply(xid, codeNoNode, nil)
				require.ErrorIs(t, <-result, zk.ErrNoNode)
				require.Equal(t, connection, e.Connection())
				s.close(c)
			})
		})
	}
}

// Nothing else is that long.
func TestAFrameThatIsLongerThanItsKindMayBeEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		go func() { _, _, _ = e.Exists(t.Context(), "/node") }()
		xid, _, _ := s.next()
		_, err := s.conn.Write(jute.AppendInt32(binary.BigEndian.AppendUint32(nil, maxFrame+1), xid))
		require.NoError(t, err)
		<-e.Over()
		require.ErrorContains(t, e.Cause(), "bytes (at most")
		s.close(c)
	})
}
