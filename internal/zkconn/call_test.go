package zkconn

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// The client library sends what waits in its next session, too, and that answer ends the epoch: both come at the same moment.
func TestAnAnswerOfTheNextSessionOfAnExternalConnectionIsNotTakenForOneOfThisEpoch(t *testing.T) {
	over := make(chan struct{})
	close(over)
	c := &Call[int]{done: over, val: 1}
	_, err := c.Wait(t.Context(), &Epoch{over: over, client: &Client{external: new(zk.Conn)}})
	require.ErrorIs(t, err, ErrOver)
	v, err := c.Wait(t.Context(), &Epoch{over: over, client: new(Client)})
	require.NoError(t, err, "a connection of our own has one session only")
	require.Equal(t, 1, v)
}
