package access

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Check reports whether somebody with the given identities has any of the wanted
// permissions. An empty list grants everything, as in the real server.
func Check(acl []wire.ACL, perm int32, ids []wire.ID) wire.Code {
	if len(acl) == 0 || slices.ContainsFunc(ids, func(id wire.ID) bool { return id.Scheme == "super" }) {
		return wire.CodeOK
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.ID.Scheme == "world" && a.ID.Name == "anyone" {
			return wire.CodeOK
		}
		for _, id := range ids {
			if id.Scheme == a.ID.Scheme && idMatches(id, a.ID.Name) {
				return wire.CodeOK
			}
		}
	}
	return wire.CodeNoAuth
}

func idMatches(id wire.ID, want string) bool {
	if id.Scheme == "ip" {
		return IPMatches(id.Name, want)
	}
	return id.Name == want
}

// Digest returns the id that "user:password" proves in the digest scheme.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// Authenticate returns the identity that an auth packet proves, or [CodeAuthFailed].
func Authenticate(scheme string, cred []byte, remote string) (wire.ID, wire.Code) {
	switch scheme {
	case "digest":
		if cred == nil {
			return wire.ID{}, wire.CodeAuthFailed
		}
		return wire.ID{Scheme: "digest", Name: Digest(jvm.Text(cred))}, wire.CodeOK
	case "ip":
		return wire.ID{Scheme: "ip", Name: remote}, wire.CodeOK
	}
	return wire.ID{}, wire.CodeAuthFailed
}

// HideDigests replaces the password hash in digest entries; that is what somebody
// with read but without admin permission gets to see.
func HideDigests(acl []wire.ACL) []wire.ACL {
	out := slices.Clone(acl)
	for i, a := range out {
		if a.ID.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID.Name, ":")
			out[i].ID.Name = user + ":x"
		}
	}
	return out
}
