package zkserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (w *rawClient) auth(scheme, cred string) reply {
	w.t.Helper()
	return w.do(OpAuth, func(e *Encoder) {
		e.Int32(0)
		e.Text(scheme)
		e.Buffer([]byte(cred))
	})
}

func TestTheDigestIsThatOfTheRealScheme(t *testing.T) {
	require.Equal(t, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=", Digest("super:test"))
}

func TestEveryOperationNeedsItsPermission(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		owner, other := join(t, s, 10*time.Second), join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, owner.auth("digest", "u:p").code)
		mine := []ACL{{PermAll, ID{"auth", ""}}}
		require.Equal(t, CodeOK, owner.do(OpCreate, createBody("/n", nil, mine, 0)).code)
		require.Equal(t, []ACL{{PermAll, ID{"digest", Digest("u:p")}}}, mustNode(t, s, "/n").ACL)
		owner.do(OpCreate, createBody("/n/k", nil, OpenACL(), 0))

		watch := true
		denied := map[string]func(w *rawClient) reply{
			"getData":     func(w *rawClient) reply { return w.do(OpGetData, watchBody("/n", watch)) },
			"getChildren": func(w *rawClient) reply { return w.do(OpGetChildren2, watchBody("/n", watch)) },
			"setData":     func(w *rawClient) reply { return w.do(OpSetData, setBody("/n", nil, -1)) },
			"getACL":      func(w *rawClient) reply { return w.do(OpGetACL, pathBody("/n")) },
			"create":      func(w *rawClient) reply { return w.create("/n/new", nil, 0) },
			"delete":      func(w *rawClient) reply { return w.do(OpDelete, versionBody("/n/k", -1)) },
			"setACL": func(w *rawClient) reply {
				return w.do(OpSetACL, func(e *Encoder) { e.Text("/n"); e.ACL(mine); e.Int32(-1) })
			},
		}
		for name, op := range denied {
			want := CodeNoAuth
			if name == "setACL" {
				want = CodeInvalidACL // "auth" stands for nobody on this connection
			}
			require.Equal(t, want, op(other).code, name)
		}
		require.Equal(t, CodeOK, other.do(OpExists, watchBody("/n", false)).code, "exists is free")
		require.Equal(t, CodeOK, other.do(OpGetData, watchBody("/n/k", false)).code)
		require.Zero(t, s.Watches(), "who may not read may not watch")
		watch = false
		r := other.do(OpMulti, multiBody(part(OpCheck, versionBody("/n", 0))))
		require.Equal(t, []Code{CodeNoAuth}, multiCodes(t, r.body))

		require.Equal(t, CodeOK, other.auth("digest", "u:p").code)
		for name, op := range denied {
			require.Equal(t, CodeOK, op(other).code, name)
		}
	})
}

func TestAnACLThatCannotMeanAnythingIsRefused(t *testing.T) {
	for _, bad := range []ID{
		{"world", "x"}, {"nope", "x"}, {"digest", "x"}, {"digest", "a:b:c"}, {"digest", "a:"}, {"ip", "x"},
		{"ip", "1.2.3.4/33"}, {"ip", "::1"}, {"auth", ""}, {"", ""},
	} {
		_, code := fixACL([]ACL{{PermAll, bad}}, []ID{{"ip", "127.0.0.1"}})
		require.Equal(t, CodeInvalidACL, code, "%v", bad)
	}
	_, code := fixACL(nil, nil)
	require.Equal(t, CodeInvalidACL, code)
	got, code := fixACL([]ACL{{1, ID{"ip", "10.0.0.0/8"}}, {1, ID{"ip", "10.0.0.0/8"}}, {2, ID{"digest", "u:h"}}}, nil)
	require.Equal(t, CodeOK, code)
	require.Len(t, got, 2, "a repeated entry counts once")
	require.Equal(t, CodeOK, checkACL(got, PermRead, []ID{{"ip", "10.9.9.9"}}))
	require.Equal(t, CodeNoAuth, checkACL(got, PermRead, []ID{{"ip", "11.9.9.9"}}))
}

func TestAnUnknownSchemeFailsAndClosesTheConnection(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, CodeAuthFailed, w.auth("kerberos", "x").code)
		w.requireClosed()
		require.Len(t, s.Sessions(), 1, "the session lives on")
	})
}

func TestSomebodyWithoutAdminSeesNoDigests(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		acl := []ACL{{PermRead, ID{"world", "anyone"}}, {PermAll, ID{"digest", "u:secret"}}}
		w.do(OpCreate, createBody("/n", nil, acl, 0))
		r := w.do(OpGetACL, pathBody("/n"))
		require.Equal(t, CodeOK, r.code)
		acl[1].ID.Name = "u:x"
		require.Equal(t, acl, r.body.ACL())
	})
}
