package zkconn

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
	"github.com/go-menagerie/menagerie/internal/logs"
)

// listingBody is the answer to a listing of n names.
func listingBody(n int) []byte {
	body := jute.AppendInt32(nil, int32(n))
	for i := range n {
		body = jute.AppendText(body, fmt.Sprintf("_c_9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d-lock-%010d", i))
	}
	return append(body, make([]byte, jute.StatSize)...)
}

// The library receives into small buffers until a frame is long, on every connection.
func TestAUserMayListAMillionNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c, e, s := connectedTo(t, p)
		user := e.Conn()
		for _, n := range []int{3, 1_100_000} {
			b := listingBody(n)
			require.Equal(t, n > 3, len(b) > maxListing*9/10)
			s.conn.Close()
			s = newScript(p, p.greet(1, time.Hour))
			go func() {
				xid, op, _ := s.next()
				require.EqualValues(t, opGetChildren2, op)
				s.reply(xid, 0, b)
			}()
			names, _, err := user.Children("/lock")
			require.NoError(t, err)
			require.Len(t, names, n)
		}
		require.NoError(t, e.Cause())
		s.close(c)
	})
}

// userOf has a user ask for the connection object, which must not take any time, and send a megabyte through it.
func userOf(t *testing.T, e *Epoch) (set chan error) {
	at := time.Now()
	user := e.Conn()
	require.Equal(t, at, time.Now())
	require.Same(t, e.conn, user)
	set = make(chan error, 1)
	go func() {
		_, err := user.Set("/x", make([]byte, 1<<20), -1)
		set <- err
	}()
	return set
}

// isSet answers everything up to the user's request, and expects that it came whole.
func (s *script) isSet(set chan error) {
	for {
		xid, op, body := s.next()
		s.reply(xid, 0, make([]byte, jute.StatSize))
		if op == opSetData {
			require.Greater(s.p.t, len(body), 1<<20)
			require.NoError(s.p.t, <-set)
			return
		}
	}
}

// The library sends from a small buffer until a user may use it. The user's first request may be long already.
func TestAUserMaySendAMegabyte(t *testing.T) {
	for when, user := range map[string]func(p *peer, e *Epoch, s *script) (*script, chan error){
		"while the library waits for something to send": func(p *peer, e *Epoch, s *script) (*script, chan error) {
			return s, userOf(p.t, e)
		},
		"while a ping cannot be sent": func(p *peer, e *Epoch, s *script) (*script, chan error) {
			w := e.current()
			w.writing <- struct{}{}
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			set := userOf(p.t, e)
			synctest.Wait()
			<-w.writing
			return s, set
		},
		"while a ping cannot be sent, and the connection is lost": func(p *peer, e *Epoch, s *script) (*script, chan error) {
			w := e.current()
			w.writing <- struct{}{}
			time.Sleep(20 * time.Minute)
			s.conn.Close()
			synctest.Wait()
			set := userOf(p.t, e)
			synctest.Wait()
			<-w.writing
			return newScript(p, p.greet(1, time.Hour)), set
		},
		"while a server does not answer the handshake": func(p *peer, e *Epoch, s *script) (*script, chan error) {
			s.conn.Close()
			conn := <-p.dials
			synctest.Wait()
			set := userOf(p.t, e)
			p.answerHello(conn, 1, time.Hour)
			return newScript(p, conn), set
		},
		"while no server can be reached": func(p *peer, e *Epoch, s *script) (*script, chan error) {
			p.dials = make(chan net.Conn) // nobody takes from it yet, so the dial blocks
			s.conn.Close()
			synctest.Wait()
			set := userOf(p.t, e)
			return newScript(p, p.greet(1, time.Hour)), set
		},
	} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				c, e, s := connectedTo(t, p)
				s, set := user(p, e, s)
				s.isSet(set)
				s.conn.Close()
				s = newScript(p, p.greet(1, time.Hour))
				s.isSet(userOf(t, e)) // on the next connection, too
				s.close(c)
			})
		})
	}
}

// saying is a log handler that calls f for each line.
type saying func(msg string)

func (saying) Enabled(context.Context, slog.Level) bool { return true }
func (s saying) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s saying) WithGroup(string) slog.Handler          { return s }
func (s saying) Handle(_ context.Context, r slog.Record) error {
	s(r.Message)
	return nil
}

// The goroutines of the library may still run when a session has ended.
func TestARequestOnAnEndedSessionFailsBecauseItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var c *Client
		set := make(chan error, 1)
		c = p.open(time.Hour, func(cfg *Config) {
			cfg.Log = logs.New(slog.New(saying(func(msg string) {
				if msg == "session lost" {
					go func() {
						_, err := c.Current().Conn().Set("/x", make([]byte, 2<<10), -1)
						set <- err
					}()
					time.Sleep(time.Second / 2)
				}
			})))
		})
		s := newScript(p, p.greet(1, time.Hour))
		synctest.Wait()
		go func() { _, _, _ = c.Current().Exists(context.Background(), "/x") }()
		xid, _, _ := s.next()
		s.reply(xid, codeSessionExpired, nil)
		require.ErrorIs(t, <-set, zk.ErrConnectionClosed)
		p.serve(p.greet(2, time.Hour))
		synctest.Wait()
		closeAll(p, c)
		_, err := c.Current().Conn().Set("/x", make([]byte, 2<<10), -1) // nobody asked before for that of this session
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
	})
}

// mute is a connection on which writes fail once broken is set.
type mute struct {
	net.Conn
	broken *atomic.Bool
}

func (m mute) Write(b []byte) (int, error) {
	if m.broken.Swap(false) {
		return 0, net.ErrClosed
	}
	return m.Conn.Write(b)
}

// A log handler may run in the very goroutine for which Conn waits: the library's loop, or the one that sends.
func TestALogHandlerMayAskForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		var c *Client
		var broken atomic.Bool
		asked := map[string]int{}
		c = p.open(time.Hour, func(cfg *Config) {
			cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := p.dial(ctx, network, addr)
				return mute{conn, &broken}, err
			}
			cfg.Log = logs.New(slog.New(saying(func(msg string) {
				if msg == "disconnected" || msg == "connected" {
					asked[msg]++
					at := time.Now()
					require.NotNil(t, c.Current().Conn())
					require.Equal(t, at, time.Now())
				}
			})))
		})
		p.greet(1, time.Hour)
		synctest.Wait()
		broken.Store(true)
		time.Sleep(20 * time.Minute) // a ping
		s := newScript(p, p.greet(1, time.Hour))
		synctest.Wait()
		require.Equal(t, map[string]int{"disconnected": 1, "connected": 2}, asked)
		require.NoError(t, c.Current().Cause())
		s.close(c)
	})
}

// Nor do connections that follow the first take more.
func TestASessionThatIsConnectedAgainTakesLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		used := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := used()
		var peers []*peer
		var conns []net.Conn
		var clients []*Client
		for range n {
			p := newPeer(t)
			c := p.open(time.Hour)
			p.greet(1, time.Hour).Close()
			conns = append(conns, p.greet(1, time.Hour))
			peers, clients = append(peers, p), append(clients, c)
		}
		synctest.Wait()
		require.Less(t, (used()-before)/n, int64(48<<10))
		for i, c := range clients {
			require.NotZero(t, c.Current().Connection())
			conns[i].Close()
			closeAll(peers[i], c)
		}
	})
}
