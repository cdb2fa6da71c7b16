package bench

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
)

// own is the path of a client that has a lock of its own.
func own(path string, i int) string { return fmt.Sprintf("%s/%d", path, i) }

// atOnce is how many requests for preparing and clearing a slice are under way at most.
const atOnce = 64

// manyLocks gives each client a lock of its own, all in one session. Nothing is excluded there.
func manyLocks(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, 1)
	if err != nil {
		return nil, err
	}
	for i := range at.Clients {
		crew.Lockers = append(crew.Lockers, &leaseLocker{acquire: zksync.NewMutex(all[0], own(at.Path, i)).LockContext})
	}
	return crew, nil
}

// plainMany is the same on a plain connection.
func plainMany(locker func(c *zk.Conn, path string, acl []zk.ACL) Locker) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		c, err := dialPlain(ctx, at)
		if err != nil {
			return nil, err
		}
		crew := &Crew{Close: c.close}
		_, root := splitServers(at.Servers)
		group := new(errgroup.Group)
		group.SetLimit(atOnce)
		for i := range at.Clients {
			path := own(root+at.Path, i)
			group.Go(func() error {
				_, err := c.conn.Create(path, nil, 0, at.Secured.acl())
				if errors.Is(err, zk.ErrNodeExists) {
					return nil
				}
				return err
			})
			crew.Lockers = append(crew.Lockers, locker(c.conn, path, at.Secured.acl()))
		}
		if err := group.Wait(); err != nil {
			crew.Close()
			return nil, err
		}
		return crew, nil
	}
}

// rehearse has each client hold once: the first use of a path costs more than later ones.
func rehearse(ctx context.Context, clients []Locker) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, c := range clients {
		group.Go(func() error {
			if err := c.Acquire(ctx); err != nil {
				return err
			}
			return c.Release()
		})
	}
	return group.Wait()
}
