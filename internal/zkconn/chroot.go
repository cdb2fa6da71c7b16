package zkconn

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// A chroot that is misspelt looks like one that is new. Locks in it exclude no other process. So it is a warning when
// the client makes the chroot, and with Config.ExistingChroot the client does not make it.

// makesChroot reports whether one of these operations creates the chroot.
func (e *Epoch) makesChroot(ops ...any) bool {
	for _, op := range ops {
		if r, ok := op.(*zk.CreateRequest); ok && e.cfg.Chroot != "" && r.Path == e.cfg.Chroot {
			return true
		}
	}
	return false
}

// missingChroot is the error of what needs a chroot that is not there, and must not be made.
func (e *Epoch) missingChroot() error {
	return fmt.Errorf("the chroot %s does not exist, and WithExistingChroot is given: correct the connect string, or create %s: %w",
		errs.ShowPath(e.cfg.Chroot), errs.ShowPath(e.cfg.Chroot), errs.ErrMisuse)
}

// madeChroot logs that the servers have created the chroot, once. The caller is the goroutine that reads the
// connection, and the logger may be slow.
func (e *Epoch) madeChroot() {
	c := e.client
	if !c.madeChroot.Swap(true) {
		e.Go(func() { c.cfg.Logger.Warn("made the chroot, which did not exist", "chroot", c.cfg.Chroot) })
	}
}

// FindChroot returns an error if the chroot does not exist, as the leader of the servers knows it.
func (e *Epoch) FindChroot(ctx context.Context) error {
	for pace := (Pace{Free: 1}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		at := e.Connection()
		if err := e.Sync(ctx, e.cfg.Chroot); err != nil {
			return err
		}
		_, there, err := e.Exists(ctx, e.cfg.Chroot)
		switch {
		case err != nil || there:
			return err
		case e.Connection() == at: // else this may be a server that was not synced
			return e.missingChroot()
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}
