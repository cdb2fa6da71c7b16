package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func (w *rawClient) auth(scheme, cred string) reply {
	w.t.Helper()
	return w.do(wire.OpAuth, func(e *wire.Encoder) {
		e.Int32(0)
		e.Text(scheme)
		e.Buffer([]byte(cred))
	})
}

func TestTheDigestIsThatOfTheRealScheme(t *testing.T) {
	require.Equal(t, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=", access.Digest("super:test"))
}

func TestEveryOperationNeedsItsPermission(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		owner, other := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, owner.auth("digest", "u:p").code)
		mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}
		require.Equal(t, wire.CodeOK, owner.do(wire.OpCreate, createBody("/n", nil, mine, 0)).code)
		require.Equal(t, []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", Name: access.Digest("u:p")}}}, mustNode(t, s, "/n").ACL)
		owner.do(wire.OpCreate, createBody("/n/k", nil, wire.OpenACL(), 0))

		watch := true
		denied := map[string]func(w *rawClient) reply{
			"getData":     func(w *rawClient) reply { return w.do(wire.OpGetData, watchBody("/n", watch)) },
			"getChildren": func(w *rawClient) reply { return w.do(wire.OpGetChildren2, watchBody("/n", watch)) },
			"setData":     func(w *rawClient) reply { return w.do(wire.OpSetData, setBody("/n", nil, -1)) },
			"getACL":      func(w *rawClient) reply { return w.do(wire.OpGetACL, pathBody("/n")) },
			"create":      func(w *rawClient) reply { return w.create("/n/new", nil, 0) },
			"delete":      func(w *rawClient) reply { return w.do(wire.OpDelete, versionBody("/n/k", -1)) },
			"setACL": func(w *rawClient) reply {
				return w.do(wire.OpSetACL, func(e *wire.Encoder) { e.Text("/n"); e.ACL(mine); e.Int32(-1) })
			},
		}
		for name, op := range denied {
			want := wire.CodeNoAuth
			if name == "setACL" {
				want = wire.CodeInvalidACL // "auth" stands for nobody on this connection
			}
			require.Equal(t, want, op(other).code, name)
		}
		require.Equal(t, wire.CodeOK, other.do(wire.OpExists, watchBody("/n", false)).code, "exists is free")
		require.Equal(t, wire.CodeOK, other.do(wire.OpGetData, watchBody("/n/k", false)).code)
		require.Zero(t, s.Watches(), "who may not read may not watch")
		watch = false
		r := other.do(wire.OpMulti, multiBody(part(wire.OpCheck, versionBody("/n", 0))))
		require.Equal(t, []wire.Code{wire.CodeNoAuth}, multiCodes(t, r.body))

		require.Equal(t, wire.CodeOK, other.auth("digest", "u:p").code)
		for name, op := range denied {
			require.Equal(t, wire.CodeOK, op(other).code, name)
		}
	})
}

func TestAnACLThatCannotMeanAnythingIsRefused(t *testing.T) {
	for _, bad := range []wire.ID{
		{Scheme: "world", Name: "x"}, {Scheme: "nope", Name: "x"}, {Scheme: "digest", Name: "x"}, {Scheme: "digest", Name: "a:b:c"}, {Scheme: "digest", Name: "a:"}, {Scheme: "ip", Name: "x"},
		{Scheme: "ip", Name: "1.2.3.4/33"}, {Scheme: "ip", Name: "::1"}, {Scheme: "auth", Name: ""}, {Scheme: "", Name: ""},
	} {
		_, code := access.Resolve([]wire.ACL{{Perms: wire.PermAll, ID: bad}}, []wire.ID{{Scheme: "ip", Name: "127.0.0.1"}})
		require.Equal(t, wire.CodeInvalidACL, code, "%v", bad)
	}
	_, code := access.Resolve(nil, nil)
	require.Equal(t, wire.CodeInvalidACL, code)
	got, code := access.Resolve([]wire.ACL{{Perms: 1, ID: wire.ID{Scheme: "ip", Name: "10.0.0.0/8"}}, {Perms: 1, ID: wire.ID{Scheme: "ip", Name: "10.0.0.0/8"}}, {Perms: 2, ID: wire.ID{Scheme: "digest", Name: "u:h"}}}, nil)
	require.Equal(t, wire.CodeOK, code)
	require.Len(t, got, 2, "a repeated entry counts once")
	require.Equal(t, wire.CodeOK, access.Check(got, wire.PermRead, []wire.ID{{Scheme: "ip", Name: "10.9.9.9"}}))
	require.Equal(t, wire.CodeNoAuth, access.Check(got, wire.PermRead, []wire.ID{{Scheme: "ip", Name: "11.9.9.9"}}))
}

func TestAnUnknownSchemeFailsAndClosesTheConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeAuthFailed, w.auth("kerberos", "x").code)
		w.requireClosed()
		require.Len(t, s.Sessions(), 1, "the session lives on")
	})
}

func TestSomebodyWithoutAdminSeesNoDigests(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		acl := []wire.ACL{{Perms: wire.PermRead, ID: wire.ID{Scheme: "world", Name: "anyone"}}, {Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", Name: "u:secret"}}}
		w.do(wire.OpCreate, createBody("/n", nil, acl, 0))
		r := w.do(wire.OpGetACL, pathBody("/n"))
		require.Equal(t, wire.CodeOK, r.code)
		acl[1].ID.Name = "u:x"
		require.Equal(t, acl, r.body.ACL())
	})
}
