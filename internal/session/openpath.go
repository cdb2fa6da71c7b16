package session

import (
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// The servers keep the access control list with which a node was made. So a list that is given for a path that was used
// without one before protects nothing: the directory stays open, and with it the nodes that are made in it.

// changing are the permissions with which a stranger could take a lock, or remove one.
const changing = zk.PermCreate | zk.PermDelete | zk.PermWrite | zk.PermAdmin

// ToAll are the permissions to change something that a list gives to everybody.
func ToAll(list []zk.ACL) (perms int32) {
	for _, a := range list {
		if a.Scheme == "world" {
			perms |= a.Perms & changing
		}
	}
	return perms
}

// openLooks are the paths at whose lists a session has looked.
type openLooks struct {
	mu    sync.Mutex
	paths map[string]struct{}
}

// mostOpenLooks bounds what is kept: a session may use a path for each of its jobs. A path that is not kept is looked at again.
const mostOpenLooks = 1 << 16

// first reports whether the session has yet to look at a path, and keeps that it does.
func (o *openLooks) first(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, looked := o.paths[path]; looked {
		return false
	}
	if o.paths == nil || len(o.paths) == mostOpenLooks {
		o.paths = make(map[string]struct{})
	}
	o.paths[path] = struct{}{}
	return true
}

func (o *openLooks) forget(path string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.paths, path)
}

// lookIfOpen logs a warning if the path of the primitive gives everybody permissions that its list does not. It does so at the first
// use of the path in the session, if there is a list that withholds any. That costs one request, for which nobody waits.
func (a *Access) lookIfOpen(e *zkconn.Epoch) {
	if a.views || ToAll(a.Settings.ACL) == changing {
		return
	}
	path := a.Full(a.Path)
	if !a.openLooks.first(path) {
		return
	}
	call := zkconn.Start(e, zkconn.ReadACL(path)) // before anything that the caller makes there
	a.Spawn(func() {
		list, err := call.Wait(a.ctx, e)
		switch {
		case zkconn.Unknown(err), err == zkconn.ErrNotSent, err == zkconn.ErrOver:
			a.openLooks.forget(path) // the next use looks again
		case err == nil && ToAll(list)&^ToAll(a.Settings.ACL) != 0:
			a.log.Once("open", path).Warn("open to everybody, although WithACL is given", "path", a.Path,
				"reason", "it was created without; mend it in zkCli.sh: first addauth with the same credential, then setAcl -R "+path+" "+shownACL(a.Settings.ACL))
		}
	})
}

// shownACL is a list as zkCli.sh takes it.
func shownACL(list []zk.ACL) string {
	shown := make([]string, len(list))
	for i, a := range list {
		var perms strings.Builder
		for _, p := range []struct {
			bit    int32
			letter byte
		}{{zk.PermCreate, 'c'}, {zk.PermDelete, 'd'}, {zk.PermRead, 'r'}, {zk.PermWrite, 'w'}, {zk.PermAdmin, 'a'}} {
			if a.Perms&p.bit != 0 {
				perms.WriteByte(p.letter)
			}
		}
		shown[i] = a.Scheme + ":" + a.ID + ":" + perms.String()
	}
	return strings.Join(shown, ",")
}
