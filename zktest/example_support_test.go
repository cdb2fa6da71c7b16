package zktest_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest"
)

// goTest runs a test inside an example, as the command does, and prints "ok" or "FAIL".
func goTest(test func(*testing.T)) {
	for name, value := range map[string]string{"test.v": "false", "test.count": "1", "test.skip": ""} { // else the output differs
		f := flag.Lookup(name).Value
		before := f.String()
		_ = f.Set(value)
		defer func() { _ = f.Set(before) }()
	}
	match := func(_, _ string) (bool, error) { return true, nil }
	if testing.RunTests(match, []testing.InternalTest{{Name: "TestOfAnExample", F: test}}) {
		fmt.Println("ok")
	} else {
		fmt.Println("FAIL")
	}
}

// dial returns a client over TCP that has a session, and a function that closes it.
func dial(srv *zktest.Server) (*zk.Conn, func()) {
	conn, events, err := zk.Connect([]string{srv.Addr()}, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		panic(err)
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn, func() {
		conn.Close()
		for range events {
		}
	}
}

// dialFor is dial for a test, which closes the client.
func dialFor(t *testing.T, srv *zktest.Server) *zk.Conn {
	t.Helper()
	conn, done := dial(srv)
	t.Cleanup(done)
	return conn
}
