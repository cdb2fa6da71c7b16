package zkconn

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// A server that was set up again may refuse a session in which something is held.
func TestHoldersAreToldOfARefusalBeforeALoggerThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var mu sync.Mutex
		logged := make(map[string]int)
		c := p.open(time.Hour, func(cfg *Config) {
			cfg.Log = logs.New(slog.New(saying(func(msg string) {
				mu.Lock()
				logged[msg]++
				mu.Unlock()
				if msg == "the session is refused for good" {
					time.Sleep(time.Second)
				}
			})))
		})
		s := newScript(p, p.greet(1, time.Hour))
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		told := make(chan time.Time, 1)
		e.OnOver(func(error) { told <- time.Now() })
		go func() { _, _, _ = e.Exists(t.Context(), "/") }()
		xid, _, _ := s.next()
		began := time.Now()
		s.reply(xid, codeAuthDemanded, nil)
		require.Equal(t, began, <-told)
		require.ErrorIs(t, e.Cause(), ErrAuth)
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, map[string]int{"connected": 1, "session lost": 1, "the session is refused for good": 1}, logged,
			"and no warning that there is no connection")
		s.close(c)
	})
}
