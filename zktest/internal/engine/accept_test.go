package engine

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// wobbly is a listener that fails before it gives each connection.
type wobbly struct {
	fails []error
	conns chan net.Conn
}

func (l *wobbly) Accept() (net.Conn, error) {
	if len(l.fails) > 0 {
		err := l.fails[0]
		l.fails = l.fails[1:]
		return nil, err
	}
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l *wobbly) Close() error   { return nil }
func (l *wobbly) Addr() net.Addr { return &net.TCPAddr{} }

func TestServeOutlivesAShortageOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		start := time.Now()
		l := &wobbly{conns: make(chan net.Conn), fails: []error{
			&net.OpError{Op: "accept", Err: syscall.EMFILE}, &net.OpError{Op: "accept", Err: syscall.ECONNABORTED},
		}}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		client, server := net.Pipe()
		l.conns <- server
		require.Equal(t, 200*time.Millisecond, time.Since(start), "it does not spin")
		_, err := client.Write([]byte("ruok"))
		require.NoError(t, err)
		answer, err := io.ReadAll(client)
		require.NoError(t, err)
		require.Equal(t, "imok", string(answer))
		close(l.conns)
		require.ErrorIs(t, <-served, net.ErrClosed)
		s.Close()
	})
}

func TestServeEndsWithItsListener(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	broken := errors.New("broken")
	require.ErrorIs(t, s.Serve(&wobbly{fails: []error{broken}}), broken)
	s.Close()
	require.ErrorIs(t, s.Serve(&wobbly{}), ErrClosed)
}

func TestConnectionsAreCountedAndToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []ConnEvent
		s := New(Config{OnConn: func(e ConnEvent) { events = append(events, e) }})
		defer s.Close()
		a, server := net.Pipe()
		s.ServeConn(server)
		b, server := net.Pipe()
		s.ServeConn(server)
		_ = a.Close()
		synctest.Wait()
		open, total := s.Connections()
		require.Equal(t, 1, open)
		require.Equal(t, 2, total)
		_ = b.Close()
		synctest.Wait()
		require.Len(t, events, 4)
		require.Equal(t, ConnEvent{Time: time.Now(), Open: true, Remote: "pipe"}, events[0])
		require.False(t, events[3].Open)
	})
}

func TestAWalkShowsParentsFirstAndStopsWhenTold(t *testing.T) {
	s := New(Config{})
	defer s.Close()
	for _, p := range []string{"/b", "/a", "/a/y", "/a/x"} {
		_, code := s.Do(wire.Call{Op: wire.OpCreate, Path: p, ACL: wire.OpenACL(), Data: []byte(p)}, 0)
		require.Equal(t, wire.CodeOK, code)
	}
	var seen []string
	s.Walk("/", func(p string, n tree.Info) bool {
		if len(n.Data) > 0 {
			require.Equal(t, p, string(n.Data))
		}
		seen = append(seen, p)
		return p != "/b"
	})
	require.Equal(t, []string{"/", "/a", "/a/x", "/a/y", "/b"}, seen)
	s.Walk("/nope", func(string, tree.Info) bool { t.Error("there is nothing"); return true })
}
