package zkserver

import (
	"crypto/sha1"
	"encoding/base64"
	"slices"
	"strings"
)

// checkACL tells whether somebody with the given identities has any of the wanted
// permissions. An empty list grants everything, as in the real server.
func checkACL(acl []ACL, perm int32, ids []ID) Code {
	if len(acl) == 0 || slices.ContainsFunc(ids, func(id ID) bool { return id.Scheme == "super" }) {
		return CodeOK
	}
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		if a.ID.Scheme == "world" && a.ID.Name == "anyone" {
			return CodeOK
		}
		for _, id := range ids {
			if id.Scheme == a.ID.Scheme && idMatches(id, a.ID.Name) {
				return CodeOK
			}
		}
	}
	return CodeNoAuth
}

func idMatches(id ID, want string) bool {
	if id.Scheme == "ip" {
		return ipMatches(id.Name, want)
	}
	return id.Name == want
}

// Digest returns the id that "user:password" proves in the digest scheme.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials))
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// authenticate returns the identity that an auth packet proves, or [CodeAuthFailed].
func authenticate(scheme string, cred []byte, remote string) (ID, Code) {
	switch scheme {
	case "digest":
		if cred == nil {
			return ID{}, CodeAuthFailed
		}
		return ID{Scheme: "digest", Name: Digest(text(cred))}, CodeOK
	case "ip":
		return ID{Scheme: "ip", Name: remote}, CodeOK
	}
	return ID{}, CodeAuthFailed
}

// hideDigests replaces the password hash in digest entries; that is what somebody
// with read but without admin permission gets to see.
func hideDigests(acl []ACL) []ACL {
	out := slices.Clone(acl)
	for i, a := range out {
		if a.ID.Scheme == "digest" {
			user, _, _ := strings.Cut(a.ID.Name, ":")
			out[i].ID.Name = user + ":x"
		}
	}
	return out
}
