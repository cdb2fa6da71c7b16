package zkconn

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestItIsCertainThatANodeMayBeReadOnlyByWhatIsPresented(t *testing.T) {
	ann := Auth{"digest", []byte("ann:secret")}
	for name, c := range map[string]struct {
		acl  []zk.ACL
		auth []Auth
		want bool
	}{
		"everybody":              {acl: zk.WorldACL(zk.PermAll), want: true},
		"nobody":                 {acl: zk.WorldACL(zk.PermAll &^ zk.PermRead)},
		"whoever is known":       {acl: zk.AuthACL(zk.PermAll), auth: []Auth{ann}, want: true},
		"nobody is known":        {acl: zk.AuthACL(zk.PermAll)},
		"ann":                    {acl: zk.DigestACL(zk.PermAll, "ann", "secret"), auth: []Auth{ann}, want: true},
		"another ann":            {acl: zk.DigestACL(zk.PermAll, "ann", "guess"), auth: []Auth{ann}},
		"ann, but not to read":   {acl: zk.DigestACL(zk.PermAll&^zk.PermRead, "ann", "secret"), auth: []Auth{ann}},
		"an address":             {acl: []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "10.0.0.1"}}, auth: []Auth{ann}},
		"the second may be read": {acl: append(zk.WorldACL(zk.PermCreate), zk.WorldACL(zk.PermRead)...), want: true},
	} {
		s := &shared{cfg: Config{Auth: c.auth}}
		require.Equal(t, c.want, s.Reads(c.acl), name)
	}
}
