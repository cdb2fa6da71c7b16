package faults_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
)

func TestADowngradeThatIsAnsweredAtItsDeadlineLeavesNoEntry(t *testing.T) {
	for range 300 { // which of the two it hears of first is a matter of chance
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			there(w)
			w.srv.Delay(w.clients[0].s.ID(), hop, hop)
			rw := zkrwmutex.New(w.clients[0].s, lockDir)
			l, err := rw.LockContext(t.Context())
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*hop)
			defer cancel()
			r, err := rw.Downgrade(ctx, l)
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			} else {
				require.NoError(t, r.Unlock())
			}
			time.Sleep(soon)
			require.Empty(t, w.srv.Children(lockDir))
			w.close()
		})
	}
}
