package zkconn

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Reads reports whether it is certain that this client may read the nodes that it makes with the list acl. If so, its
// servers send it an event for every change of such a node that it watches. To a session that may not read a node some servers
// (3.8 with its later security fixes) send none, so there no conclusion may rest on an event that has not come.
//
// It goes by the credentials that are presented on every connection. What else a server may know of a connection (its
// address, its certificate) is not certain.
func (s *shared) Reads(acl []zk.ACL) bool {
	return slices.ContainsFunc(acl, func(a zk.ACL) bool {
		if a.Perms&zk.PermRead == 0 {
			return false
		}
		switch a.Scheme {
		case "world":
			return true
		case "auth": // whatever was presented when the node was made
			return len(s.cfg.Auth) > 0
		}
		return slices.ContainsFunc(s.cfg.Auth, func(own Auth) bool { return own.proves(a) })
	})
}

// proves reports whether the credential proves the identity in an entry of a list.
func (own Auth) proves(a zk.ACL) bool {
	user, password, _ := strings.Cut(string(own.Cred), ":")
	return a.Scheme == "digest" && own.Scheme == "digest" && a.ID == zk.DigestACL(0, user, password)[0].ID
}
