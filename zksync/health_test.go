package zksync_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestASessionIsHealthyWhileItsLeasesCanBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		probe := func() (int, string) {
			w := httptest.NewRecorder()
			zksync.HealthHandler(s).ServeHTTP(w, httptest.NewRequest("GET", "/ready", nil))
			return w.Code, w.Body.String()
		}
		code, text := probe()
		require.Equal(t, 200, code)
		require.Equal(t, "ok\n", text)
		l, err := zksync.NewMutex(s, "/l").LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, s.Healthy())
		heal, open := srv.Partition(s.ID()), srv.Partition(0) // no new session either
		<-l.Done()
		synctest.Wait()
		require.Error(t, s.Healthy())
		code, text = probe()
		require.Equal(t, 503, code)
		require.Equal(t, s.Healthy().Error()+"\n", text)
		heal()
		open()
		time.Sleep(time.Minute)
		require.NoError(t, s.Healthy())
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.Healthy(), zksync.ErrClosed)
	})
}

func TestAnElectionIsHealthyWhileItLeadsOrWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		a, b := zkelection.New(s, "/e", zkelection.Candidate{ID: "a"}), zkelection.New(srv.Session(t), "/e", zkelection.Candidate{ID: "b"})
		require.ErrorIs(t, a.Healthy(), zksync.ErrNotAcquired)
		l, err := a.Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, a.Healthy())
		waits := make(chan error)
		go func() { _, err := b.Campaign(t.Context()); waits <- err }()
		synctest.Wait()
		require.NoError(t, b.Healthy())
		require.NoError(t, l.Unlock())
		require.ErrorIs(t, a.Healthy(), zksync.ErrNotAcquired)
		require.NoError(t, <-waits)
		require.NoError(t, b.Healthy())
		require.ErrorIs(t, zkelection.New(nil, "/e", zkelection.Candidate{}).Healthy(), zksync.ErrMisuse)
	})
}

func ExampleHealthHandler() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()
	w := httptest.NewRecorder()
	zksync.HealthHandler(s).ServeHTTP(w, httptest.NewRequest("GET", "/ready", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 ok
}
