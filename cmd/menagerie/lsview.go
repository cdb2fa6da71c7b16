package main

import (
	"context"
	"path"

	reads "github.com/go-menagerie/menagerie/internal/look"
)

// lsOptions is the command line of ls.
type lsOptions struct {
	path                         string
	asJSON, long, recurse, watch bool
}

// view is what ls has seen.
type view struct {
	target *object // nil if the path does not exist
	below  []*object
	chroot string // that does not exist either
}

// view reads what is to be shown.
func (l *look) view(ctx context.Context, o lsOptions) (*view, error) {
	l.Brief = false
	n, err := l.node(ctx, o.path)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return l.missing(ctx, o.path)
	}
	v := new(view)
	if v.target, err = l.describe(ctx, n); err != nil {
		return nil, err
	}
	l.Brief = !o.long && !o.asJSON
	return v, l.descend(ctx, n, v.target, o.recurse, &v.below)
}

// descend adds the children of n that are not part of it.
func (l *look) descend(ctx context.Context, n *reads.Node, o *object, recurse bool, all *[]*object) error {
	return l.Each(ctx, n, o.rest, func(c *reads.Node) error {
		found, err := l.describe(ctx, c)
		if err != nil {
			return err
		}
		*all = append(*all, found)
		if !recurse {
			return nil
		}
		return l.descend(ctx, c, found, recurse, all)
	})
}

// missing is the view of a path that does not exist. With --watch it watches the nearest parent that exists:
// the servers would keep a watch of a node that may never come.
func (l *look) missing(ctx context.Context, at string) (*view, error) {
	v := new(view)
	root := l.Session.Full("/")
	if _, there, err := l.Epoch.Exists(ctx, root); err != nil {
		return nil, err
	} else if !there {
		v.chroot = root
	}
	for full := l.Session.Full(at); l.Changed != nil && full != "/"; {
		full = path.Dir(full)
		if err := reads.Absent(l.Watch(ctx, full, true)); err != nil {
			return nil, err
		}
		if _, there, err := l.Epoch.Exists(ctx, full); err != nil || there {
			return v, err
		}
	}
	return v, nil
}
