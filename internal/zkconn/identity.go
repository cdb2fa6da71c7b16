package zkconn

import (
	"crypto/rand"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// identity is a random credential of the scheme "digest". The client presents it to the servers, so that
// the list of a node can give a permission to this client alone. It is presented on a connection when it
// is first asked for, because most sessions never need it.
//
// The scheme "auth" in a list stands for all that a session has presented. A user who gives such a list means the
// credentials of the user. So before a session sends such a list, its identity is withdrawn, for good.
type identity struct {
	acl  zk.ACL // gives PermWrite
	cred []byte

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

func newIdentity() *identity {
	const user = "menagerie"
	password := rand.Text()
	return &identity{acl: zk.DigestACL(zk.PermWrite, user, password)[0], cred: []byte(user + ":" + password)}
}

// Identity returns the entry of an access control list that gives PermWrite to this client alone. It does not block.
// It reports false if the server has not confirmed yet, on this connection, that it knows the identity. The first
// call on a connection presents it. Once it was withdrawn, Identity always reports false.
func (e *Epoch) Identity() (write zk.ACL, known bool) {
	w := e.current()
	if w == nil {
		return zk.ACL{}, false
	}
	i := e.client.identity
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.withdrawn {
		return zk.ACL{}, false
	}
	if w.identity == notPresented && e.Go(func() { _, _ = w.put(jute.AppendFrame(nil, authRequest(Auth{"digest", i.cred}))) }) {
		w.identity = presented
	}
	return i.acl, w.identity == confirmed
}

// answered takes the answer to credentials. It reports whether these were the identity.
// Servers that do not know the scheme say so, and then close the connection.
func (i *identity) answered(w *wire, code int32) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if w.identity != presented {
		return false
	}
	w.identity = confirmed
	if code != 0 {
		w.identity, i.withdrawn = notPresented, true
	}
	return true
}

var errWithdrawn = errors.New("the identity of the session was withdrawn")

// WithdrawIdentity makes the client present no identity any more. If the identity was presented on the present
// connection, that connection is cut, since a server cannot forget credentials: WithdrawIdentity reports that.
func (c *Client) WithdrawIdentity() (cut bool) {
	i := c.identity
	if i == nil { // a client without servers
		return false
	}
	i.mu.Lock()
	i.withdrawn = true // from here on no connection is told of it
	i.mu.Unlock()
	e := c.Current()
	if e == nil {
		return false
	}
	w := e.current()
	if w == nil {
		return false
	}
	i.mu.Lock()
	cut = w.identity != notPresented
	i.mu.Unlock()
	if cut {
		w.fail(errWithdrawn)
	}
	return cut
}

// KeepIdentityOut withdraws the identity if the list, with which a user makes a node, would take it in.
func (c *Client) KeepIdentityOut(acl []zk.ACL) {
	if slices.ContainsFunc(acl, func(l zk.ACL) bool { return l.Scheme == "auth" }) {
		c.WithdrawIdentity()
	}
}

// WithdrawIdentity and KeepIdentityOut are those of the client.
func (e *Epoch) WithdrawIdentity()            { e.client.WithdrawIdentity() }
func (e *Epoch) KeepIdentityOut(acl []zk.ACL) { e.client.KeepIdentityOut(acl) }
