package zksync_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// running counts the goroutines in whose stack there is the function.
func running(function string) (n int) {
	all := make([]byte, 8<<20)
	for g := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(g, function+"(") || strings.Contains(g, function+".func") {
			n++
		}
	}
	return n
}

func TestCloseJoinsADowngradeThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		m := reentrant.NewRWMutex(zkrwmutex.New(s, "/locks/a"))
		m.Lock()
		m.RLock()
		heal := srv.Partition(s.ID())
		m.Unlock() // it downgrades, and returns after a second without an answer
		require.Equal(t, 1, running("reentrant.(*holds).replaceLease"))
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = s.Close()
		}()
		synctest.Wait()
		heal()
		<-closed
		require.Zero(t, running("reentrant.(*holds).replaceLease"))
		m.RUnlock()
	})
}

// Close does not wait for what is the user's, who may call it there.
func TestTheFunctionOfAFlightMayCloseTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		f := zkflight.New[int](s, "/flights")
		_, err, _ := f.Do(context.Background(), "key", func(context.Context) (int, error) { return 1, s.Close() })
		require.ErrorIs(t, err, zksync.ErrClosed)
		_, err, _ = f.Do(context.Background(), "key", func(context.Context) (int, error) { return 1, nil })
		require.ErrorIs(t, err, zksync.ErrClosed)
	})
}

func TestCloseJoinsAFlightThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		other := zkflight.New[int](srv.Session(t), "/flights")
		end := make(chan struct{})
		go other.Do(context.Background(), "key", func(context.Context) (int, error) { <-end; return 1, nil })
		synctest.Wait()
		s := srv.Session(t)
		f := zkflight.New[int](s, "/flights")
		waits := make(chan error, 1)
		go func() {
			_, err, _ := f.Do(context.Background(), "key", func(context.Context) (int, error) { return 2, nil })
			waits <- err
		}()
		time.Sleep(time.Second)
		require.Empty(t, waits)
		require.Equal(t, 2, running("call[...]).contend"))
		require.NoError(t, s.Close())
		require.Equal(t, 1, running("call[...]).contend"), "the other one's")
		require.ErrorIs(t, <-waits, zksync.ErrClosed)
		close(end)
		synctest.Wait()
	})
}
