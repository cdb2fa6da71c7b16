package zkconn

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"
)

// identity is a random credential of the scheme "digest". The client presents it to the servers, so that
// the list of a node can give a permission to this client alone. It is presented on a connection when it
// is first asked for, because most sessions never need it.
//
// The scheme "auth" in a list stands for all that a session has presented. A user who gives such a list means the
// credentials of the user. So before a session sends such a list, its identity is withdrawn, for good.
type identity struct {
	acl  zk.ACL // gives PermWrite
	cred Auth

	mu        sync.Mutex
	withdrawn bool
}

// presence is how far the identity is known on one connection.
type presence int

const (
	notPresented presence = iota
	presented
	confirmed
)

// draw draws a new identity.
func (i *identity) draw() {
	const user = "menagerie"
	password := rand.Text()
	i.acl, i.cred = zk.DigestACL(zk.PermWrite, user, password)[0], Auth{"digest", []byte(user + ":" + password)}
}

// show returns the entry of an access control list that gives PermWrite to this client alone, unless the identity was
// withdrawn. known says that its presence on the connection is confirmed. On its first call for a connection it calls present.
func (i *identity) show(p *presence, present func()) (write zk.ACL, ok, known bool) {
	i.mu.Lock()
	now, withdrawn := *p, i.withdrawn
	if !withdrawn && now == notPresented {
		*p = presented
	}
	i.mu.Unlock()
	if withdrawn {
		return zk.ACL{}, false, false
	}
	if now == notPresented {
		present()
	}
	return i.acl, true, now == confirmed
}

// answered takes the answer to credentials. It reports whether these were the identity.
// Servers that do not know the scheme say so, and then close the connection.
func (i *identity) answered(p *presence, code int32) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if *p != presented {
		return false
	}
	*p = confirmed
	if code != 0 {
		*p, i.withdrawn = notPresented, true
	}
	return true
}

// withdraw keeps the identity from being presented on any connection from here on.
func (i *identity) withdraw() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.withdrawn = true
}

// known reports whether the identity was presented on a connection.
func (i *identity) known(p *presence) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return *p != notPresented
}

var errWithdrawn = errors.New("the identity of the session was withdrawn")

// takesIdentity reports whether a list, with which a user makes a node, would take the identity in.
func takesIdentity(acl []zk.ACL) bool {
	return slices.ContainsFunc(acl, func(l zk.ACL) bool { return l.Scheme == "auth" })
}
