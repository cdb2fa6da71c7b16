package zkconn

import (
	"context"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// fates are what becomes of the dials of each server. A server without one accepts the connection, and closes it.
type fates map[string]error

func (f fates) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	switch err := f[addr]; err {
	case nil:
		theirs, ours := net.Pipe()
		go func() {
			_, _ = readFrame(ours, 1024)
			ours.Close()
		}()
		return theirs, nil
	case os.ErrDeadlineExceeded: // a dark host
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
}

const (
	saysRefused = "connection refused: no server listens there"
	saysClosed  = "it accepted the connection, then closed it"
	saysGuesses = ": is there no quorum, is this a port for TLS or for other servers (2888, 3888), or has it as many connections from here as its maxClientCnxns allows?"
)

func TestTheLastErrorHasTheLastCauseOfEveryServer(t *testing.T) {
	const refused = syscall.ECONNREFUSED
	tests := []struct {
		name  string
		fates fates
		says  string
	}{
		{"two refuse, one has no quorum", fates{"zk1:2181": refused, "zk2:2181": refused},
			"1 of 3 servers answers, and has no quorum: zk1:2181, zk2:2181: " + saysRefused + "; zk3:2181: " + saysClosed},
		{"one refuses, one is dark", fates{"zk2:2181": os.ErrDeadlineExceeded, "zk3:2181": refused},
			"1 of 3 servers answers, and has no quorum: zk1:2181: " + saysClosed +
				"; zk2:2181: silent: no answer to the dial in 10s: is the host down, or a firewall in between?; zk3:2181: " + saysRefused},
		{"one refuses", fates{"zk2:2181": refused},
			"the last attempts failed: zk1:2181, zk3:2181: " + saysClosed + saysGuesses + "; zk2:2181: " + saysRefused},
		{"all refuse", fates{"zk1:2181": refused, "zk2:2181": refused, "zk3:2181": refused},
			"the last attempts failed: zk1:2181, zk2:2181, zk3:2181: " + saysRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for range 8 { // the servers are dialled in random order
				synctest.Test(t, func(t *testing.T) {
					c := Open(Config{Servers: []string{"zk1:2181", "zk2:2181", "zk3:2181"}, Timeout: 10 * time.Second, Dial: test.fates.dial})
					defer c.Close()
					time.Sleep(time.Minute)
					require.EqualError(t, c.LastError(), test.says)
				})
			}
		})
	}
}

func TestTheLastErrorOfTheFirstRoundSaysWhichServerHasNotAnsweredYet(t *testing.T) {
	for range 8 {
		synctest.Test(t, func(t *testing.T) {
			f := fates{"zk1:2181": syscall.ECONNREFUSED, "zk2:2181": syscall.ECONNREFUSED, "zk3:2181": os.ErrDeadlineExceeded}
			c := Open(Config{Servers: []string{"zk1:2181", "zk2:2181", "zk3:2181"}, Timeout: 9 * time.Second, Dial: f.dial})
			defer c.Close()
			time.Sleep(time.Second)
			text := c.LastError().Error()
			require.Contains(t, text, "dialing zk3:2181: no answer for 1s")
			time.Sleep(time.Second)
			require.Contains(t, c.LastError().Error(), "zk3:2181: silent: no answer to the dial in 1.5s")
		})
	}
}

// What a name stood for once is no server any more.
func TestTheLastErrorForgetsAddressesThatANameHasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var address atomic.Value
		address.Store("10.0.0.1")
		refuse := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		c := Open(Config{Servers: []string{"zk:2181"}, Timeout: 10 * time.Second, Dial: refuse,
			Resolve: func(context.Context, string) ([]string, error) { return []string{address.Load().(string)}, nil }})
		defer c.Close()
		time.Sleep(time.Minute)
		require.EqualError(t, c.LastError(), "the last attempt failed: zk:2181 (10.0.0.1): "+saysRefused)
		address.Store("10.0.0.2")
		time.Sleep(time.Minute)
		require.EqualError(t, c.LastError(), "the last attempt failed: zk:2181 (10.0.0.2): "+saysRefused)
	})
}

// Its name may be looked up in vain, while the addresses of before are tried.
func TestAServerOfWhichAnAddressIsKnownCountsOnce(t *testing.T) {
	one, other := target{server: "zk1:2181", address: "10.0.0.1:2181"}, target{server: "zk2:2181", address: "10.0.0.2:2181"}
	said, alone := quorum([]failure{
		{target: one, err: diagnoseHandshake(io.EOF, nil, time.Second)},
		{target: other, err: diagnoseDial(syscall.ECONNREFUSED, time.Second)},
		{target: target{server: other.server}, err: &net.DNSError{Err: "no such host"}},
	}, 3)
	require.False(t, alone, "nothing is known of the third")
	require.Equal(t, "the last attempts failed", said)
}
