package writers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
)

func TestTheWritersOfEarlierSessionsLeaveNoGoroutines(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		n := zkatomic.NewInt64(s, "/n")
		session := func() {
			_, err := n.Add(t.Context(), 1)
			require.NoError(t, err)
			v.Server.Expire(s.ID())
			time.Sleep(time.Minute)
		}
		session()
		session()
		before := v.Goroutines()
		for range 30 {
			session()
		}
		v.GoroutinesBack(before)
		_, err := n.Add(t.Context(), 1)
		require.NoError(t, err)
		require.Len(t, v.Children("/n/zkatomic.Int64/writers"), 1)
	})
}
