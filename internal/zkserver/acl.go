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

// Both of these are beyond anything that a client needs, and keep a hostile one from making the server compare
// or keep more than it has sent: each "auth" entry of a list becomes as many entries as there are identities.
const (
	maxIDs = 100
	maxACL = 100_000
)

// fixACL checks a list that a client wants to set and replaces the "auth" scheme by the
// identities that the client has proved.
func fixACL(acl []ACL, ids []ID) ([]ACL, Code) {
	var out []ACL
	seen := make(map[ACL]struct{}, len(acl))
	for _, a := range acl {
		if _, dup := seen[a]; dup {
			continue
		}
		seen[a] = struct{}{}
		if len(out) > maxACL {
			break
		}
		switch {
		case a.ID.Name == nullName && a.ID.known():
			return nil, CodeMarshalling // the real server stumbles over it
		case a.ID.Scheme == "world" && a.ID.Name == "anyone":
			out = append(out, a)
		case a.ID.Scheme == "auth":
			proved := false
			for _, id := range ids {
				if id.Scheme == "ip" {
					continue // an address is not a proof of identity
				}
				proved = true
				out = append(out, ACL{Perms: a.Perms, ID: id})
			}
			if !proved {
				return nil, CodeInvalidACL
			}
		case validID(a.ID):
			out = append(out, a)
		default:
			return nil, CodeInvalidACL
		}
	}
	if len(out) == 0 || len(out) > maxACL {
		return nil, CodeInvalidACL
	}
	return out, CodeOK
}

// known tells whether the scheme of an ID is one whose names the server looks at.
func (id ID) known() bool {
	return id.Scheme == "world" || id.Scheme == "digest" || id.Scheme == "ip"
}

func validID(id ID) bool {
	switch id.Scheme {
	case "digest":
		return strings.Count(strings.TrimRight(id.Name, ":"), ":") == 1
	case "ip":
		_, _, ok := parseBlock(id.Name)
		return ok
	}
	return false
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
