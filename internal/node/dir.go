package node

import (
	"context"
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// MakeDir creates a directory, and its parents if they are missing. It tries the leaf first, because usually only that is
// missing. They are containers, so the servers remove them when they are empty.
func MakeDir(ctx context.Context, e *zkconn.Epoch, dir string, acl []zk.ACL) error {
	_, err := MakeDirBelow(ctx, e, "", dir, acl)
	return err
}

// MakeDirBelow is MakeDir without the directory base, which is above dir: if it is missing, the error is zk.ErrNoNode. made
// reports that dir did not exist before.
func MakeDirBelow(ctx context.Context, e *zkconn.Epoch, base, dir string, acl []zk.ACL) (made bool, err error) {
	parent, missing := dir[:strings.LastIndexByte(dir, '/')], false
	r := Insist(ctx, e)
	for r.Next() {
		if missing { // no pause comes between this and the next attempt: the servers may remove the parent, which is empty
			if _, err := MakeDirBelow(ctx, e, base, parent, acl); err != nil {
				return false, err
			}
		}
		_, r.Err = e.Create(ctx, dir, nil, zk.FlagContainer, acl)
		if zkconn.Unimplemented(r.Err) { // before 3.5
			_, r.Err = e.Create(ctx, dir, nil, 0, acl)
		}
		if missing = errors.Is(r.Err, zk.ErrNoNode) && parent != base; missing {
			r.Err = ErrAgain
		}
	}
	if errors.Is(r.Err, zk.ErrNodeExists) {
		return false, nil
	}
	return r.Err == nil, r.Err
}

// Dirs are the directories above a node, for the transaction that makes the node: it makes those that are missing, too.
// Which these are is learned from refusals. At first none is taken to be missing; after Miss the last one is.
type Dirs struct {
	acl      []zk.ACL
	rest     string   // the directory above those that are missing; "" if there is none
	missing  []string // the upper ones first
	plain    bool     // the servers know no containers: they are older than 3.5
	attempts int      // how often something may yet be learned: others may make and remove directories all the time
}

// NewDirs are dir and the directories above it.
func NewDirs(dir string, acl []zk.ACL) *Dirs {
	if dir == "/" {
		dir = ""
	}
	return &Dirs{acl: acl, rest: dir, attempts: 2 + strings.Count(dir, "/")}
}

// Miss says that the last directory is missing, as far as is known.
func (d *Dirs) Miss() {
	if d.rest != "" {
		d.missing = append([]string{d.rest}, d.missing...)
		d.rest = d.rest[:strings.LastIndexByte(d.rest, '/')]
	}
}

// Ops are the operations that make the missing directories. They come first in the transaction. In a transaction the flags
// make a container, also if the operation is a plain create; and servers without containers refuse it, as they do other
// flags that they do not know.
func (d *Dirs) Ops() (ops []any) {
	flags := int32(zk.FlagContainer)
	if d.plain {
		flags = 0
	}
	for _, dir := range d.missing {
		ops = append(ops, &zk.CreateRequest{Path: dir, Acl: d.acl, Flags: flags})
	}
	return ops
}

// Learn takes the error of the transaction, and reports whether another one has better directories. If the last one exists
// after all, it does not: somebody has made it meanwhile, and the caller has to look what for.
func (d *Dirs) Learn(err error) bool {
	at := -1
	if refused := new(zkconn.TxnError); errors.As(err, &refused) {
		at = refused.Index
	}
	if d.attempts--; d.attempts < 0 {
		return false
	}
	switch above := at >= 0 && at < len(d.missing)-1; {
	case at == 0 && errors.Is(err, zk.ErrNoNode) && d.rest != "":
		d.Miss()
	case above && errors.Is(err, zk.ErrNodeExists):
		d.rest, d.missing = d.missing[at], d.missing[at+1:]
	case len(d.missing) > 0 && errors.Is(err, zk.ErrBadArguments) && !d.plain:
		d.plain = true
	default:
		return false
	}
	return true
}
