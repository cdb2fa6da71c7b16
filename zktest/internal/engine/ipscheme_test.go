package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestAddressesInACLsAreJudgedAsByTheRealServer(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		grants := func(name string) wire.Code {
			created := w.do(wire.OpCreate, createBody("/ip-", nil, []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "ip", Name: name}}}, wire.FlagSequential))
			if created.code != wire.CodeOK {
				return created.code
			}
			return w.do(wire.OpGetData, watchBody(created.body.Text(), false)).code
		}
		for _, name := range []string{"127.0.0.1", "127.0.0.1/32", "127.0.0.1/8", "127.0.0.1/0", "1.2.3.4/0", "127.255.0.1/8",
			"127.0.0.0/31", "127.0.0.01", "0127.0.0.1", "+127.0.0.1", "127.0.0.1/+8", "127.0.0.1/08", "١٢٧.0.0.1", "127.0.0.1/３２"} {
			require.Equal(t, wire.CodeOK, grants(name), name)
		}
		for _, name := range []string{"10.0.0.0/8", "192.168.0.0/16", "127.0.0.2/31", "127.0.0.128/25", "127.0.0.2"} {
			require.Equal(t, wire.CodeNoAuth, grants(name), name)
		}
		for _, name := range []string{"", "/", "/8", "1.2.3", "1.2.3.4.5", "256.1.1.1", "-1.0.0.1", "::1", "::1/128", "fe80::/10",
			"::ffff:127.0.0.1", "localhost", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "127.0.0.1/a", "127.0.0.1/8/9",
			" 127.0.0.1", "127.0.0.1 ", "127.0.0.1.", "𝟏𝟐𝟕.0.0.1", "¹²⁷.0.0.1", "127..0.1", "127.0.0.1/0.0.0.0"} {
			require.Equal(t, wire.CodeInvalidACL, grants(name), name)
		}
	})
}

func TestWhoConnectsFromAnIPv6AddressMatchesNoAddress(t *testing.T) {
	require.False(t, access.IPMatches("0:0:0:0:0:0:0:1", "0.0.0.0/0"))
	require.True(t, access.IPMatches("10.1.2.3", "0.0.0.0/0"))
}
