package engine

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestASessionCanListItsEphemeralsByTheBeginningOfTheirPaths(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w, other := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Empty(t, w.do(wire.OpGetEphemerals, pathBody("")).body.Texts())
		w.create("/a", nil, 0)
		for _, path := range []string{"/e1", "/e2", "/ab", "/a/x"} {
			w.create(path, nil, wire.FlagEphemeral)
		}
		other.create("/e9", nil, wire.FlagEphemeral)
		all := []string{"/ab", "/e1", "/e2", "/a/x"} // the order of a real server
		for prefix, want := range map[string][]string{
			"": all, "/": all, " / ": all, "\t": all, "\x00": all,
			"/e": {"/e1", "/e2"}, "/a": {"/ab", "/a/x"}, "/a/": {"/a/x"}, "/e1": {"/e1"},
			"/e1/": nil, "e": nil, "//": nil, " /e": nil, "\u3000": nil,
		} {
			require.Equal(t, want, w.do(wire.OpGetEphemerals, pathBody(prefix)).body.Texts(), "%q", prefix)
		}
		require.Equal(t, all, w.do(wire.OpGetEphemerals, func(e *wire.Encoder) { e.Int32(-1) }).body.Texts(), "no prefix")
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpGetEphemerals, nil).code)
		require.Equal(t, wire.CodeOK, w.do(wire.OpExists, watchBody("/", false)).code, "and the connection lives")
	})
}

func TestEphemeralsAreListedInTheOrderOfACopyOfARealServersTable(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for n := range 30 {
			w.create(fmt.Sprintf("/e%d", n), nil, wire.FlagEphemeral)
		}
		for n := range 30 {
			if n%4 != 0 {
				w.do(wire.OpDelete, versionBody(fmt.Sprintf("/e%d", n), -1))
			}
		}
		require.Equal(t, strings.Fields("/e12 /e20 /e8 /e28 /e0 /e16 /e24 /e4"), w.do(wire.OpGetEphemerals, pathBody("")).body.Texts())
		w.do(wire.OpDelete, versionBody("/e0", -1))
		w.do(wire.OpDelete, versionBody("/e4", -1))
		for _, same := range []string{"/Aa", "/BB", "/AaAa", "/BBBB", "/AaBB", "/BBAa"} { // of equal hashes
			w.create(same, nil, wire.FlagEphemeral)
		}
		require.Equal(t, strings.Fields("/e12 /e20 /e8 /e28 /e16 /e24 /Aa /BB /AaAa /BBBB /AaBB /BBAa"),
			w.do(wire.OpGetEphemerals, pathBody("")).body.Texts())
	})
}

func TestAllChildrenAreCountedAtAnyDepth(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for _, path := range []string{"/n", "/n/a", "/n/a/b", "/n/ab", "/nx"} {
			w.create(path, nil, 0)
		}
		count := func(path string) int32 {
			r := w.do(wire.OpGetAllChildrenNumber, pathBody(path))
			require.Equal(t, wire.CodeOK, r.code, path)
			return r.body.Int32()
		}
		require.EqualValues(t, 3, count("/n"))
		require.EqualValues(t, 1, count("/n/a"))
		require.EqualValues(t, 0, count("/nx"))
		require.EqualValues(t, 8, count("/"), "with /zookeeper, /zookeeper/quota and /zookeeper/config")
		require.EqualValues(t, 9, count(""), "an oddity of the real server: the root is below no name")

		for _, path := range []string{"/nope", "n", "/n/", "//"} {
			require.Equal(t, wire.CodeNoNode, w.do(wire.OpGetAllChildrenNumber, pathBody(path)).code, path)
		}
		writeOnly := []wire.ACL{{Perms: wire.PermWrite, ID: wire.ID{Scheme: "world", Name: "anyone"}}}
		w.do(wire.OpCreate, createBody("/n/w", nil, writeOnly, 0))
		require.Equal(t, wire.CodeNoAuth, w.do(wire.OpGetAllChildrenNumber, pathBody("/n/w")).code)
		require.EqualValues(t, 4, count("/n"), "what may not be read is counted")
	})
}

func TestAClientCanAskWhoItIs(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		who := func() (ids []wire.ID) {
			r := w.do(wire.OpWhoAmI, nil)
			for range r.body.Int32() {
				ids = append(ids, wire.ID{Scheme: r.body.Text(), Name: r.body.Text()})
			}
			require.NoError(t, r.body.Err())
			return ids
		}
		require.Equal(t, []wire.ID{{Scheme: "ip", Name: "127.0.0.1"}}, who())
		w.auth("digest", "bob:pw")
		require.Equal(t, []wire.ID{{Scheme: "digest", Name: "bob"}, {Scheme: "ip", Name: "127.0.0.1"}}, who(), "no password is shown")
		for _, cred := range []string{"alice:pw", "bob:pw2", "nopw", "a:b:c", ":x", "bob:pw"} {
			require.Equal(t, wire.CodeOK, w.auth("digest", cred).code)
		}
		require.Equal(t, wire.CodeOK, w.auth("ip", "anything").code)
		var names []string
		for _, id := range who() {
			names = append(names, id.Name)
		}
		require.Equal(t, []string{"bob", "bob", "a", "nopw", "127.0.0.1", "alice", ""}, names, "in the order of a real server's table")
	})
}

func TestAddressesAreWrittenAsByTheJVM(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1": "127.0.0.1", "::ffff:10.1.2.3": "10.1.2.3", "::1": "0:0:0:0:0:0:0:1", "fe80::a:0": "fe80:0:0:0:0:0:a:0",
	} {
		require.Equal(t, want, access.HostAddress(net.ParseIP(in)))
	}
}
