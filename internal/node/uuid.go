package node

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/go-zookeeper/zk"
)

// The version digit of a uuid tells others what to expect of the node. RFC 9562 leaves
// version 8 to applications and does not define version 9. Other libraries use 4.
const (
	versionAt        = 14 // in 8-4-4-4-12
	announcesVersion = 8
	sealedVersion    = 9
)

// NewUUID returns a random uuid. Every attempt uses a new one, unless [Spec].UUID is set,
// because it has to tell this attempt's node from that of the last attempt. See [Announces].
func NewUUID() string { return newUUID(announcesVersion) }

func newUUID(version byte) string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime aborts without a source of randomness
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

func hasVersion(uuid string, version byte) bool {
	return len(uuid) == 36 && uuid[versionAt] == '0'+version
}

// Announces reports whether the node with this uuid is one of ours. A transaction of
// ours that puts another node into the place of a node first writes to that node. So
// whoever watches it hears of a change before it departs, and a node that departs
// without a change was given up. Other libraries replace a node without writing to it.
func Announces(uuid string) bool { return hasVersion(uuid, announcesVersion) }

// Sealed reports whether only its maker can write to the node with this uuid. Its maker writes to
// it once: in the transaction that deletes it, and only if the node is held alone and nothing
// takes its place. So a change says that a holder has left. A departure without a change says nothing.
func Sealed(uuid string) bool { return hasVersion(uuid, sealedVersion) }

// seal returns the access control list of a sealed node: acl, but
// nobody may write to the node or change its list, except own.
func seal(acl []zk.ACL, own zk.ACL) []zk.ACL {
	sealed := []zk.ACL{own}
	for _, a := range acl {
		if a.Perms &^= zk.PermWrite | zk.PermAdmin; a.Perms != 0 {
			sealed = append(sealed, a)
		}
	}
	return sealed
}

// IsUUID reports whether a text looks like a uuid of [NewUUID].
func IsUUID(text string) bool {
	return len(text) == 36 && strings.Count(text, "-") == 4 && strings.Trim(text, "0123456789abcdef-") == ""
}
