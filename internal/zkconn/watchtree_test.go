package zkconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// The server does not know the request, and keeps the connection. A read of the path behind the request relied on the tree
// and set no watch, so its subscriber must read again. Nothing is left that the server could forget.
func TestAReadBehindATreeThatIsRefusedReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(time.Hour)
		s := newScript(p, p.greet(1, time.Hour))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		refused := make(chan error)
		go func() {
			_, err := e.WatchTree(t.Context(), "/tree", func(string, Event) {})
			refused <- err
		}()
		tree, op, _ := s.next()
		require.EqualValues(t, opAddWatch, op)
		told := make(chan Event, 1)
		e.StartWatchData("/tree", func(what Event) { told <- what })
		read, op, body := s.next()
		require.EqualValues(t, opGetData, op)
		require.Equal(t, readRequest("/tree", false), body)
		s.reply(tree, codeUnimplemented, nil)
		require.True(t, Unimplemented(<-refused))
		s.reply(read, 0, append(jute.AppendText(nil, ""), make([]byte, jute.StatSize)...))
		require.Equal(t, Disconnected, <-told)
		e.StartWatchData("/tree", func(Event) {})
		_, op, body = s.next()
		require.EqualValues(t, opGetData, op, "nothing else is asked")
		require.Equal(t, readRequest("/tree", true), body)
		s.close(c)
	})
}
