package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/watch"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestTheListOfWatchesHasEachOnce(t *testing.T) {
	s := newServer(t, Config{})
	a, b := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
	ids := []int64{s.Sessions()[0].ID, s.Sessions()[1].ID}
	a.create("/n", nil, 0)
	b.do(wire.OpGetData, watchBody("/n", true))
	b.do(wire.OpGetChildren2, watchBody("/n", true))
	a.do(wire.OpExists, watchBody("/m", true))
	a.do(wire.OpAddWatch, kindBody("/n", 0))
	a.do(wire.OpAddWatch, kindBody("/", 1))
	require.Equal(t, []WatchInfo{
		{"/", ids[0], watch.Recursive}, {"/m", ids[0], watch.Data},
		{"/n", ids[0], watch.Persistent}, {"/n", ids[1], watch.Data}, {"/n", ids[1], watch.Children},
	}, s.WatchList())
}
