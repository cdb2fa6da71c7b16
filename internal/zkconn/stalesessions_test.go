package zkconn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheNewestGraveComesFirstAndTheOthersInTurn(t *testing.T) {
	g := newStaleSessions()
	require.True(t, g.add(Credentials{ID: 1}), "somebody must begin")
	for id := int64(2); id <= 3; id++ {
		require.False(t, g.add(Credentials{ID: id}), "somebody has begun")
	}
	began := time.Now()
	var order []int64
	for i := range 6 {
		d := g.next()
		order = append(order, d.ID)
		d.due = began.Add(time.Duration(i) * time.Second)
	}
	require.Equal(t, []int64{3, 2, 1, 3, 2, 1}, order)
	g.remove(3)
	require.Equal(t, int64(2), g.next().ID)
	require.Len(t, g.all(), 2)
	g.remove(1)
	g.remove(2)
	require.Nil(t, g.next())
	require.True(t, g.add(Credentials{ID: 4}), "whoever found none has ended")
}

func TestOfTooManyGravesTheOldestIsForgotten(t *testing.T) {
	g := newStaleSessions()
	for id := int64(1); id <= 3*maxStale; id++ {
		g.add(Credentials{ID: id})
	}
	require.Len(t, g.all(), maxStale)
	require.Equal(t, int64(2*maxStale+1), g.all()[0].ID)
}
