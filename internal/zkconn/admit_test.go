package zkconn_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// Close and the refusal, which ends the connection, meet in any order.
func TestCloseDoesNotWaitWhenTheSessionWasNotAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		for range 500 {
			admitting := make(chan struct{})
			c := zkconn.Open(zkconn.Config{
				Servers: []string{"a:1"}, Timeout: timeout, Dial: srv.DialContext,
				Admit: func(context.Context, *zkconn.Epoch) error {
					close(admitting)
					time.Sleep(time.Millisecond)
					return errs.Misuse("not here")
				},
			})
			<-admitting
			time.Sleep(time.Millisecond)
			began := time.Now()
			c.Close()
			require.Less(t, time.Since(began), 10*time.Millisecond)
		}
		require.Empty(t, srv.Sessions())
	})
}
