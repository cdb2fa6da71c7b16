package zkconn

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that was set up again may refuse a session in which something is held.
func TestHoldersAreToldOfARefusalBeforeALoggerThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(time.Hour, func(cfg *Config) {
			cfg.Logger = slog.New(saying(func(msg string) {
				if msg == "the servers refuse this client" {
					time.Sleep(time.Second)
				}
			}))
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
		s.close(c)
	})
}
