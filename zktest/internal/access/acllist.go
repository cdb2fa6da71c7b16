package access

import (
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Both of these are beyond anything that a client needs, and keep a hostile one from making the server compare
// or keep more than it has sent: each "auth" entry of a list becomes as many entries as there are identities.
const (
	MaxIDs = 100
	maxACL = 100_000
)

// Resolve checks a list that a client wants to set and replaces the "auth" scheme by the
// identities that the client has proved.
func Resolve(acl []wire.ACL, ids []wire.ID) ([]wire.ACL, wire.Code) {
	acl, code := withoutDuplicates(acl)
	if code != wire.CodeOK {
		return nil, code
	}
	var out []wire.ACL
	for _, a := range acl {
		if len(out) > maxACL {
			break
		}
		switch {
		case a.ID.Name == wire.NullName && known(a.ID):
			return nil, wire.CodeMarshalling // the real server stumbles over it
		case a.ID.Scheme == "world" && a.ID.Name == "anyone":
			out = append(out, a)
		case a.ID.Scheme == "auth":
			proved := false
			for _, id := range ids {
				if id.Scheme == "ip" {
					continue // an address is not a proof of identity
				}
				proved = true
				out = append(out, wire.ACL{Perms: a.Perms, ID: id})
			}
			if !proved {
				return nil, wire.CodeInvalidACL
			}
		case validID(a.ID):
			out = append(out, a)
		default:
			return nil, wire.CodeInvalidACL
		}
	}
	if len(out) == 0 || len(out) > maxACL {
		return nil, wire.CodeInvalidACL
	}
	return out, wire.CodeOK
}

// withoutDuplicates leaves out what is in a list twice. The real server compares each entry with those in front of
// it: first the permissions, then the scheme, then the name. It stumbles when it gets to a null one.
func withoutDuplicates(acl []wire.ACL) ([]wire.ACL, wire.Code) {
	out := make([]wire.ACL, 0, len(acl))
	seen := make(map[wire.ACL]struct{}, len(acl))
	perms := make(map[int32]struct{})
	schemes := make(map[wire.ACL]struct{}) // names left out
	for _, a := range acl {
		kind := wire.ACL{Perms: a.Perms, ID: wire.ID{Scheme: a.ID.Scheme}}
		_, samePerms := perms[a.Perms]
		_, sameScheme := schemes[kind]
		if samePerms && a.ID.Scheme == wire.NullName || sameScheme && a.ID.Name == wire.NullName {
			return nil, wire.CodeMarshalling
		}
		perms[a.Perms], schemes[kind] = struct{}{}, struct{}{}
		if _, dup := seen[a]; dup {
			continue
		}
		seen[a] = struct{}{}
		out = append(out, a)
	}
	return out, wire.CodeOK
}

// known reports whether the scheme of an ID is one whose names the server looks at.
func known(id wire.ID) bool {
	return id.Scheme == "world" || id.Scheme == "digest" || id.Scheme == "ip"
}

func validID(id wire.ID) bool {
	switch id.Scheme {
	case "digest":
		return strings.Count(strings.TrimRight(id.Name, ":"), ":") == 1
	case "ip":
		_, _, ok := parseBlock(id.Name)
		return ok
	}
	return false
}
