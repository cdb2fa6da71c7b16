package zkserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// aclBody makes an ACL list of which a null name can be a part.
func aclBody(acl []ACL) func(*Encoder) {
	return func(e *Encoder) {
		e.Int32(int32(len(acl)))
		for _, a := range acl {
			e.Int32(a.Perms)
			for _, s := range []string{a.ID.Scheme, a.ID.Name} {
				if s == nullName {
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
	bob, al := ID{"digest", Digest("bob:pw")}, ID{"digest", Digest("al:q")}
	world := ACL{PermAll, ID{"world", "anyone"}}
	both := []ACL{{PermAll, bob}, {PermAll, al}}
	one := func(scheme, name string) []ACL { return []ACL{{PermAll, ID{scheme, name}}, world} }
	for name, c := range map[string]struct {
		asked, want []ACL
		code        Code
	}{
		"an empty list":                  {code: CodeInvalidACL},
		"world":                          {asked: []ACL{world}, want: []ACL{world}},
		"world, somebody else":           {asked: one("world", "someone"), code: CodeInvalidACL},
		"world, nobody":                  {asked: one("world", ""), code: CodeInvalidACL},
		"world without a name":           {asked: one("world", nullName), code: CodeMarshalling},
		"digest without a name":          {asked: one("digest", nullName), code: CodeMarshalling},
		"ip without a name":              {asked: one("ip", nullName), code: CodeMarshalling},
		"an unknown scheme":              {asked: one("foo", "bar"), code: CodeInvalidACL},
		"an unknown scheme without name": {asked: one("foo", nullName), code: CodeInvalidACL},
		"no scheme":                      {asked: one("", ""), code: CodeInvalidACL},
		"neither scheme nor name":        {asked: one(nullName, nullName), code: CodeInvalidACL},
		"schemes that are not set up":    {asked: one("x509", "CN=a"), code: CodeInvalidACL},
		"sasl":                           {asked: one("sasl", "a"), code: CodeInvalidACL},
		"super":                          {asked: one("super", "a"), code: CodeInvalidACL},
		"capitals":                       {asked: one("WORLD", "anyone"), code: CodeInvalidACL},
		"a bad entry behind a good one":  {asked: []ACL{world, {PermAll, ID{"foo", "x"}}}, code: CodeInvalidACL},
		"twice the same":                 {asked: []ACL{world, world}, want: []ACL{world}},
		"twice with other permissions": {asked: []ACL{world, {PermRead, world.ID}},
			want: []ACL{world, {PermRead, world.ID}}},
		"permissions that do not exist": {asked: []ACL{{-1, world.ID}}, want: []ACL{{-1, world.ID}}},
		"auth":                          {asked: []ACL{{PermAll, ID{"auth", ""}}}, want: both},
		"auth with a name":              {asked: []ACL{{PermAll, ID{"auth", "blah"}}}, want: both},
		"auth without a name":           {asked: []ACL{{PermAll, ID{"auth", nullName}}}, want: both},
		"auth and one of its own": {asked: []ACL{{PermAll, bob}, {PermAll, ID{"auth", ""}}},
			want: append([]ACL{{PermAll, bob}}, both...)},
		"digest, empty password": {asked: one("digest", "a:"), code: CodeInvalidACL},
		"digest, empty user":     {asked: one("digest", ":a"), want: one("digest", ":a")},
		"digest, two colons":     {asked: one("digest", "a::"), code: CodeInvalidACL},
		"digest that is no text": {asked: one("digest", "\xfe:\xfe"), want: one("digest", "\uFFFD:\uFFFD")},
	} {
		inBubble(t, Config{}, func(t *testing.T, s *Server) {
			w := join(t, s, 10*time.Second)
			w.auth("digest", "bob:pw")
			w.auth("digest", "al:q")
			w.create("/set", nil, 0)
			list := aclBody(c.asked)
			r := w.do(OpCreate, func(e *Encoder) { e.Text("/new"); e.Buffer(nil); list(e); e.Int32(0) })
			require.Equal(t, c.code, r.code, name)
			r = w.do(OpSetACL, func(e *Encoder) { e.Text("/set"); list(e); e.Int32(0) })
			require.Equal(t, c.code, r.code, name)
			if c.code != CodeOK {
				require.Equal(t, OpenACL(), mustNode(t, s, "/set").ACL)
				return
			}
			require.EqualValues(t, 1, decodeStat(r.body).Aversion)
			require.Equal(t, c.want, mustNode(t, s, "/new").ACL, name)
			require.Equal(t, c.want, mustNode(t, s, "/set").ACL, name)
		})
	}
}

func TestComparingEntriesStumblesOverWhatIsNull(t *testing.T) {
	none, nameless := ID{nullName, "x"}, ID{"auth", nullName}
	world := ID{"world", "anyone"}
	ids := []ID{{"digest", "u:h"}}
	for name, c := range map[string]struct {
		list []ACL
		code Code
	}{
		"no scheme behind the same permissions":      {[]ACL{{1, world}, {1, none}}, CodeMarshalling},
		"no scheme behind others":                    {[]ACL{{1, world}, {2, none}}, CodeInvalidACL},
		"no scheme in front":                         {[]ACL{{1, none}, {1, world}}, CodeInvalidACL},
		"no name behind the same scheme":             {[]ACL{{1, ID{"auth", "y"}}, {1, nameless}}, CodeMarshalling},
		"no name behind other permissions":           {[]ACL{{2, ID{"auth", "y"}}, {1, nameless}}, CodeOK},
		"no name behind another scheme":              {[]ACL{{1, world}, {1, nameless}}, CodeOK},
		"no name in front":                           {[]ACL{{1, nameless}, {1, ID{"auth", "y"}}}, CodeOK},
		"behind an entry that is wrong for its part": {[]ACL{{1, ID{"foo", "y"}}, {1, none}}, CodeMarshalling},
	} {
		_, code := fixACL(c.list, ids)
		require.Equal(t, c.code, code, name)
	}
}

func TestANullListIsAnEmptyOne(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for _, n := range []int32{-1, -2, 0} {
			r := w.do(OpSetACL, func(e *Encoder) { e.Text("/"); e.Int32(n); e.Int32(-1) })
			require.Equal(t, CodeInvalidACL, r.code)
		}
	})
}

func TestAuthOnlyStandsForProvedIdentities(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, w.auth("ip", "").code)
		mine := []ACL{{PermAll, ID{"auth", ""}}}
		require.Equal(t, CodeInvalidACL, w.do(OpCreate, createBody("/n", nil, mine, 0)).code, "an address proves nothing")
	})
}

func TestCredentialsThatCannotBeRefuseTheConnection(t *testing.T) {
	authBody := func(scheme string, cred []byte) func(*Encoder) {
		return func(e *Encoder) {
			e.Int32(0)
			if scheme == nullName {
				e.Int32(-1)
			} else {
				e.Text(scheme)
			}
			e.Buffer(cred)
		}
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		for name, body := range map[string]func(*Encoder){
			"no credential": authBody("digest", nil), "no scheme": authBody(nullName, []byte("a:b")), "world": authBody("world", []byte("anyone")),
			"auth": authBody("auth", []byte{}), "capitals": authBody("DIGEST", []byte("a:b")), "empty": authBody("", []byte{}),
		} {
			w := join(t, s, 10*time.Second)
			before := s.Zxid()
			r := w.do(OpAuth, body)
			require.Equal(t, CodeAuthFailed, r.code, name)
			require.Zero(t, r.zxid)
			w.requireClosed()
			require.Equal(t, before, s.Zxid())
		}
		for name, body := range map[string]func(*Encoder){
			"nothing": nil, "cut off": func(e *Encoder) { e.Int32(0); e.Text("digest") },
			"a negative length": func(e *Encoder) { e.Int32(0); e.Text("digest"); e.Int32(-7) },
		} {
			w := join(t, s, 10*time.Second)
			w.send(OpAuth, body)
			w.requireClosed()
			t.Log(name)
		}
		w := join(t, s, 10*time.Second)
		require.Equal(t, CodeOK, w.do(OpAuth, authBody("digest", []byte{})).code, "an empty one proves something")
		require.Equal(t, CodeOK, w.do(OpAuth, authBody("ip", nil)).code)
	})
}
