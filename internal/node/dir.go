package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// MakeDir creates a directory and its parents. It tries the leaf first, because mostly only the
// leaf is missing. They are containers, so that the servers remove them when they are empty.
func MakeDir(ctx context.Context, e *zkconn.Epoch, dir string, acl []zk.ACL) error {
	for pace, made := (Pace{}), (Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		err := e.CreateContainer(ctx, dir, nil, acl)
		if zkconn.Unimplemented(err) { // before 3.5
			_, err = e.Create(ctx, dir, nil, 0, acl)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNodeExists):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			parent := dir[:strings.LastIndexByte(dir, '/')]
			if parent == "" {
				return err
			}
			if err := MakeDir(ctx, e, parent, acl); err != nil {
				return err
			}
			if err := made.Rest(ctx, e); err != nil { // no pause the first time; if the parent is gone again, there is one
				return err
			}
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			// To create it again is harmless. The pause is for a server that keeps answering nonsense.
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// NewUUID returns a random uuid. Every attempt uses a new one, unless [Spec].UUID is set,
// because it has to tell this attempt's node from that of the last attempt.
//
// Its version is 8, which RFC 9562 leaves to applications,
// and not the 4 that other libraries use: see [Announces].
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime aborts without a source of randomness
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Announces reports whether the node with this uuid is one of ours. A transaction of
// ours that puts another node into the place of a node first writes to that node. So
// whoever watches it hears of a change before it departs, and a node that departs
// without a change was given up. Other libraries replace a node without writing to it.
func Announces(uuid string) bool { return len(uuid) == 36 && uuid[14] == '8' }
