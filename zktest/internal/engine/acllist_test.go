package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// aclBody makes an ACL list of which a null name can be a part.
func aclBody(acl []wire.ACL) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		e.Int32(int32(len(acl)))
		for _, a := range acl {
			e.Int32(a.Perms)
			for _, s := range []string{a.ID.Scheme, a.ID.Name} {
				if s == wire.NullName {
					e.Int32(-1)
					continue
				}
				e.Text(s)
			}
		}
	}
}

// The answers are those of a real server to somebody who is bob and al.
func TestListsOfPermissionsAreJudgedAsByTheRealServer(t *testing.T) {
	bob, al := wire.ID{Scheme: "digest", Name: access.Digest("bob:pw")}, wire.ID{Scheme: "digest", Name: access.Digest("al:q")}
	world := wire.ACL{Perms: wire.PermAll, ID: wire.ID{Scheme: "world", Name: "anyone"}}
	both := []wire.ACL{{Perms: wire.PermAll, ID: bob}, {Perms: wire.PermAll, ID: al}}
	one := func(scheme, name string) []wire.ACL {
		return []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: scheme, Name: name}}, world}
	}
	for name, c := range map[string]struct {
		asked, want []wire.ACL
		code        wire.Code
	}{
		"an empty list":                  {code: wire.CodeInvalidACL},
		"world":                          {asked: []wire.ACL{world}, want: []wire.ACL{world}},
		"world, somebody else":           {asked: one("world", "someone"), code: wire.CodeInvalidACL},
		"world, nobody":                  {asked: one("world", ""), code: wire.CodeInvalidACL},
		"world without a name":           {asked: one("world", wire.NullName), code: wire.CodeMarshalling},
		"digest without a name":          {asked: one("digest", wire.NullName), code: wire.CodeMarshalling},
		"ip without a name":              {asked: one("ip", wire.NullName), code: wire.CodeMarshalling},
		"an unknown scheme":              {asked: one("foo", "bar"), code: wire.CodeInvalidACL},
		"an unknown scheme without name": {asked: one("foo", wire.NullName), code: wire.CodeInvalidACL},
		"no scheme":                      {asked: one("", ""), code: wire.CodeInvalidACL},
		"neither scheme nor name":        {asked: one(wire.NullName, wire.NullName), code: wire.CodeInvalidACL},
		"schemes that are not set up":    {asked: one("x509", "CN=a"), code: wire.CodeInvalidACL},
		"sasl":                           {asked: one("sasl", "a"), code: wire.CodeInvalidACL},
		"super":                          {asked: one("super", "a"), code: wire.CodeInvalidACL},
		"capitals":                       {asked: one("WORLD", "anyone"), code: wire.CodeInvalidACL},
		"a bad entry behind a good one":  {asked: []wire.ACL{world, {Perms: wire.PermAll, ID: wire.ID{Scheme: "foo", Name: "x"}}}, code: wire.CodeInvalidACL},
		"twice the same":                 {asked: []wire.ACL{world, world}, want: []wire.ACL{world}},
		"twice with other permissions": {asked: []wire.ACL{world, {Perms: wire.PermRead, ID: world.ID}},
			want: []wire.ACL{world, {Perms: wire.PermRead, ID: world.ID}}},
		"permissions that do not exist": {asked: []wire.ACL{{Perms: -1, ID: world.ID}}, want: []wire.ACL{{Perms: -1, ID: world.ID}}},
		"auth":                          {asked: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}, want: both},
		"auth with a name":              {asked: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: "blah"}}}, want: both},
		"auth without a name":           {asked: []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: wire.NullName}}}, want: both},
		"auth and one of its own": {asked: []wire.ACL{{Perms: wire.PermAll, ID: bob}, {Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}},
			want: append([]wire.ACL{{Perms: wire.PermAll, ID: bob}}, both...)},
		"digest, empty password": {asked: one("digest", "a:"), code: wire.CodeInvalidACL},
		"digest, empty user":     {asked: one("digest", ":a"), want: one("digest", ":a")},
		"digest, two colons":     {asked: one("digest", "a::"), code: wire.CodeInvalidACL},
		"digest that is no text": {asked: one("digest", "\xfe:\xfe"), want: one("digest", "\uFFFD:\uFFFD")},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			w := join(t, s, 10*time.Second)
			w.auth("digest", "bob:pw")
			w.auth("digest", "al:q")
			w.create("/set", nil, 0)
			list := aclBody(c.asked)
			r := w.do(wire.OpCreate, func(e *wire.Encoder) { e.Text("/new"); e.Buffer(nil); list(e); e.Int32(0) })
			require.Equal(t, c.code, r.code, name)
			r = w.do(wire.OpSetACL, func(e *wire.Encoder) { e.Text("/set"); list(e); e.Int32(0) })
			require.Equal(t, c.code, r.code, name)
			if c.code != wire.CodeOK {
				require.Equal(t, wire.OpenACL(), mustNode(t, s, "/set").ACL)
				return
			}
			require.EqualValues(t, 1, r.body.Stat().Aversion)
			require.Equal(t, c.want, mustNode(t, s, "/new").ACL, name)
			require.Equal(t, c.want, mustNode(t, s, "/set").ACL, name)
		})
	}
}

func TestComparingEntriesStumblesOverWhatIsNull(t *testing.T) {
	none, nameless := wire.ID{Scheme: wire.NullName, Name: "x"}, wire.ID{Scheme: "auth", Name: wire.NullName}
	world := wire.ID{Scheme: "world", Name: "anyone"}
	ids := []wire.ID{{Scheme: "digest", Name: "u:h"}}
	for name, c := range map[string]struct {
		list []wire.ACL
		code wire.Code
	}{
		"no scheme behind the same permissions":      {[]wire.ACL{{Perms: 1, ID: world}, {Perms: 1, ID: none}}, wire.CodeMarshalling},
		"no scheme behind others":                    {[]wire.ACL{{Perms: 1, ID: world}, {Perms: 2, ID: none}}, wire.CodeInvalidACL},
		"no scheme in front":                         {[]wire.ACL{{Perms: 1, ID: none}, {Perms: 1, ID: world}}, wire.CodeInvalidACL},
		"no name behind the same scheme":             {[]wire.ACL{{Perms: 1, ID: wire.ID{Scheme: "auth", Name: "y"}}, {Perms: 1, ID: nameless}}, wire.CodeMarshalling},
		"no name behind other permissions":           {[]wire.ACL{{Perms: 2, ID: wire.ID{Scheme: "auth", Name: "y"}}, {Perms: 1, ID: nameless}}, wire.CodeOK},
		"no name behind another scheme":              {[]wire.ACL{{Perms: 1, ID: world}, {Perms: 1, ID: nameless}}, wire.CodeOK},
		"no name in front":                           {[]wire.ACL{{Perms: 1, ID: nameless}, {Perms: 1, ID: wire.ID{Scheme: "auth", Name: "y"}}}, wire.CodeOK},
		"behind an entry that is wrong for its part": {[]wire.ACL{{Perms: 1, ID: wire.ID{Scheme: "foo", Name: "y"}}, {Perms: 1, ID: none}}, wire.CodeMarshalling},
	} {
		_, code := access.Resolve(c.list, ids)
		require.Equal(t, c.code, code, name)
	}
}

func TestANullListIsAnEmptyOne(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for _, n := range []int32{-1, -2, 0} {
			r := w.do(wire.OpSetACL, func(e *wire.Encoder) { e.Text("/"); e.Int32(n); e.Int32(-1) })
			require.Equal(t, wire.CodeInvalidACL, r.code)
		}
	})
}

func TestAuthOnlyStandsForProvedIdentities(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, w.auth("ip", "").code)
		mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}
		require.Equal(t, wire.CodeInvalidACL, w.do(wire.OpCreate, createBody("/n", nil, mine, 0)).code, "an address proves nothing")
	})
}

func TestCredentialsThatCannotBeRefuseTheConnection(t *testing.T) {
	authBody := func(scheme string, cred []byte) func(*wire.Encoder) {
		return func(e *wire.Encoder) {
			e.Int32(0)
			if scheme == wire.NullName {
				e.Int32(-1)
			} else {
				e.Text(scheme)
			}
			e.Buffer(cred)
		}
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		for name, body := range map[string]func(*wire.Encoder){
			"no credential": authBody("digest", nil), "no scheme": authBody(wire.NullName, []byte("a:b")), "world": authBody("world", []byte("anyone")),
			"auth": authBody("auth", []byte{}), "capitals": authBody("DIGEST", []byte("a:b")), "empty": authBody("", []byte{}),
		} {
			w := join(t, s, 10*time.Second)
			before := s.Zxid()
			r := w.do(wire.OpAuth, body)
			require.Equal(t, wire.CodeAuthFailed, r.code, name)
			require.Zero(t, r.zxid)
			w.requireClosed()
			require.Equal(t, before, s.Zxid())
		}
		for name, body := range map[string]func(*wire.Encoder){
			"nothing": nil, "cut off": func(e *wire.Encoder) { e.Int32(0); e.Text("digest") },
			"a negative length": func(e *wire.Encoder) { e.Int32(0); e.Text("digest"); e.Int32(-7) },
		} {
			w := join(t, s, 10*time.Second)
			w.send(wire.OpAuth, body)
			w.requireClosed()
			t.Log(name)
		}
		w := join(t, s, 10*time.Second)
		require.Equal(t, wire.CodeOK, w.do(wire.OpAuth, authBody("digest", []byte{})).code, "an empty one proves something")
		require.Equal(t, wire.CodeOK, w.do(wire.OpAuth, authBody("ip", nil)).code)
	})
}
