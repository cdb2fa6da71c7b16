package tree

import (
	"context"
	"path"

	reads "github.com/go-menagerie/menagerie/internal/look"
)

// View is a path, and the objects below it.
type View struct {
	Target *Object // nil if the path does not exist
	Below  []*Object
	Chroot string // that does not exist either
}

// View reads a path and its children, or with recurse all below it. With brief the objects below have no rows that must be
// read for themselves.
func (l *Look) View(ctx context.Context, path string, recurse, brief bool) (*View, error) {
	l.Brief = false
	n, err := l.At(ctx, path)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return l.missing(ctx, path)
	}
	v := new(View)
	if v.Target, err = l.Describe(ctx, n); err != nil {
		return nil, err
	}
	l.Brief = brief
	return v, l.descend(ctx, n, v.Target, recurse, &v.Below)
}

// descend adds the children of n that are not part of it.
func (l *Look) descend(ctx context.Context, n *reads.Node, o *Object, recurse bool, all *[]*Object) error {
	return l.Each(ctx, n, o.Rest, func(c *reads.Node) error {
		found, err := l.Describe(ctx, c)
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
func (l *Look) missing(ctx context.Context, at string) (*View, error) {
	v := new(View)
	root := l.Session.Full("/")
	if _, there, err := l.Epoch.Exists(ctx, root); err != nil {
		return nil, err
	} else if !there {
		v.Chroot = root
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
