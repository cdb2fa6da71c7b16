package zktest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest"
)

// What becomes of a leader whose network is cut, to the instant and without waiting for it.
func Example() {
	TestFailover := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // time is virtual
			srv := zktest.Run(t) // fails t if a session, ephemeral or watch is left over
			leader, standby := srv.Connect(t, 10*time.Second), srv.Connect(t, 10*time.Second)
			if _, err := leader.Create("/leader", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			_, _, gone, err := standby.ExistsW("/leader")
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			heal := srv.Partition(leader.SessionID()) // silence, as when a cable is pulled
			fmt.Println((<-gone).Type, "after", time.Since(start))
			zktest.CheckNoNode(t, srv, "/leader")
			heal()
			zktest.WaitSessions(t, srv, 2) // it is back, as somebody new
		})
	}
	goTest(TestFailover)
	// Output:
	// EventNodeDeleted after 10.05s
	// ok
}

// Three nights of heartbeats take longer than a test may by default.
func ExampleWithVirtualLimit() {
	TestNights := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithVirtualLimit(100*time.Hour))
			srv.Connect(t, time.Minute)
			time.Sleep(72 * time.Hour)
			zktest.WaitSessions(t, srv, 1)
		})
	}
	goTest(TestNights)
	// Output: ok
}

// In a test, Run is all there is to do. What it started ends with the test.
func ExampleRun() {
	TestRegister := func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		if _, err := conn.Create("/me", []byte("here"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		zktest.CheckNode(t, srv, "/me", []byte("here"))
	}
	goTest(TestRegister)
	// Output: ok
}

// Inside a bubble time is virtual: an hour passes in no time, and instants are exact. A session with a
// timeout of 10 s expires at the first tick after 10 s of silence.
func ExampleRun_synctest() {
	TestExpiry := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t, zktest.WithTick(time.Second))
			conn := srv.Connect(t, 10*time.Second)
			time.Sleep(time.Hour) // heartbeats keep the session
			if _, _, err := conn.Exists("/"); err != nil {
				t.Fatal(err)
			}
			start := time.Now() // of the silence
			srv.OnSessionExpired(func(_ int64, at time.Time) {
				fmt.Println("expired after", at.Sub(start))
			})
			heal := srv.Partition(conn.SessionID())
			zktest.WaitSessions(t, srv, 0)
			heal()
			zktest.WaitSessions(t, srv, 1) // the client has got another
		})
	}
	goTest(TestExpiry)
	// Output:
	// expired after 11s
	// ok
}

// Any client can be tested that takes an address: here a program that was only given that, and
// asks a question of four letters.
func ExampleServer_Addr() {
	TestOtherProgram := func(t *testing.T) {
		srv := zktest.Run(t)
		srv.Load(map[string]string{"/app/config": "v1"})
		c, err := net.Dial("tcp", srv.Addr()) // exec.Command("java", ..., srv.Addr()) is no different
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "srvr")
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "Mode") {
				fmt.Println(lines.Text())
			}
		}
	}
	goTest(TestOtherProgram)
	// Output:
	// Mode: standalone
	// ok
}

// For clients on TCP, which cannot live in a bubble, the test moves the clock.
func ExampleServer_Advance() {
	TestFailover := func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithManualClock())
		leader, standby := dialFor(t, srv), dialFor(t, srv)
		if _, err := leader.Create("/leader", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := standby.ExistsW("/leader")
		if err != nil {
			t.Fatal(err)
		}
		heal := srv.Partition(leader.SessionID())
		defer heal()
		srv.Advance(11 * time.Second) // the standby can be heard: it keeps its session
		fmt.Println((<-gone).Type, srv.Children("/"))
	}
	goTest(TestFailover)
	// Output:
	// EventNodeDeleted [zookeeper]
	// ok
}

func ExampleServer_SetTime() {
	srv := zktest.Start(zktest.WithManualClock())
	defer srv.Close()
	srv.SetTime(time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC))
	srv.Create("/n", nil, 0, 0)
	n, _ := srv.Node("/n")
	fmt.Println(n.Stat.Ctime)
	// Output: 2147483648000
}

// Without a test, a program or TestMain closes the server itself.
func ExampleStart() {
	srv := zktest.Start(zktest.WithTimeoutLimits(time.Second, time.Minute))
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	path, err := conn.Create("/n-", []byte("hello"), zk.FlagSequence, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	// Output: /n-0000000000 <nil>
}

func ExampleStartAddr() {
	srv, err := zktest.StartAddr("127.0.0.1:0") // or a port that clients expect, 2181 for instance
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	host, _, _ := net.SplitHostPort(srv.Addr())
	fmt.Println(host)
	// Output: 127.0.0.1
}

// A test waits for a state, not for a while.
func ExampleServer_WaitFor() {
	srv := zktest.Start()
	defer srv.Close()
	conn, done := dial(srv)
	defer done()
	go func() {
		_, _ = conn.Create("/ready", nil, 0, zk.WorldACL(zk.PermAll))
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := srv.WaitFor(ctx, func() bool {
		_, ok := srv.Node("/ready")
		return ok
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleOption() {
	srv := zktest.Start(
		zktest.WithTick(2*time.Second), // that of a real server
		zktest.WithTimeoutLimits(4*time.Second, 40*time.Second),
	)
	defer srv.Close()
	conn, done := dial(srv) // asks for 10 s
	defer done()
	_, _, _ = conn.Exists("/")
	fmt.Println(srv.Sessions()[0].Timeout)
	// Output: 10s
}

// A client with options of its own works in a bubble, too, if its address needs no DNS.
func ExampleServer_Dial() {
	TestReconnect := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			conn, events, err := zk.Connect([]string{"127.0.0.1:2181"}, 10*time.Second,
				zk.WithDialer(srv.Dial), zk.WithLogger(quiet{}), zk.WithMaxBufferSize(1<<20))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				conn.Close()
				for range events { // its goroutines have ended, too
				}
			}()
			zktest.WaitSessions(t, srv, 1)
			synctest.Wait() // the client has heard of it
			srv.Stop()
			time.Sleep(time.Minute)
			srv.Restart()
			_, _, err = conn.Exists("/")
			for ; err != nil; _, _, err = conn.Exists("/") {
				time.Sleep(time.Second)
			}
			fmt.Println(conn.State())
		})
	}
	goTest(TestReconnect)
	// Output:
	// StateHasSession
	// ok
}
