package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// mostChecked bounds the nodes below the path whose access lists are read.
const mostChecked = 1000

// lists reads access lists.
type lists struct{ *tree.Look }

// openPaths are the findings about what anybody may change at PATH, its parents, and below it.
func (a *app) openPaths(ctx context.Context, checked string) (all []servers.Finding) {
	ctx, cancel := within(ctx, a.connectTimeout.value())
	defer cancel()
	s, err := zksync.Connect(ctx, a.target(), append(a.options(), zksync.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err == nil {
		defer goodbye(s)
		err = tree.Looking(ctx, s, func(ctx context.Context, l *tree.Look) (err error) {
			all, err = lists{l}.open(ctx, checked)
			return err
		})
	}
	var coded *exitError
	switch {
	case errors.As(err, &coded):
		all = append(all, servers.Finding{Severity: servers.Problem, Text: coded.Error(), Fix: "correct --acl-check, or the chroot"})
	case err != nil:
		why := fmt.Sprintf("no answer within %v", a.connectTimeout.value())
		if ctx.Err() == nil {
			why = forPeople(err)
		}
		all = append(all, servers.Finding{Severity: servers.Problem, Text: "the access lists of " + checked + " are not read: " + why,
			Fix: "try again when a quorum serves"})
	}
	return all
}

// open looks at the access lists. If that of the path is open, the fix for it mends those below, too.
func (l lists) open(ctx context.Context, checked string) (all []servers.Finding, err error) {
	full := l.Session.Full(checked)
	for p := path.Dir(full); p != full; p = path.Dir(p) {
		found, err := l.worldWritable(ctx, p)
		switch {
		case err != nil:
			return nil, err
		case found:
			all = append(all, servers.Finding{Severity: servers.Note, Text: p + ", a parent of " + checked + ", is world-writable: anybody can create nodes there, and delete empty ones",
				Fix: "if no other program creates nodes there, in zkCli.sh: addauth digest USER:PASSWORD; setAcl " + p + " auth::cdrwa,world:anyone:r"})
		}
		if p == "/" {
			break
		}
	}
	if _, there, err := l.Epoch.Exists(ctx, full); err != nil || !there {
		if err == nil {
			err = exitWith(exitNoSuchPath, "%s does not exist", checked)
		}
		return all, err
	}
	if found, err := l.worldWritable(ctx, full); err != nil || found {
		return append(all, servers.Finding{Severity: servers.Problem, Text: checked + " is world-writable: anybody can take its locks, and remove those of others",
			Fix: mend(full)}), err
	}
	first, n, err := l.openBelow(ctx, full)
	switch {
	case err != nil || n == 0:
	default:
		all = append(all, servers.Finding{Severity: servers.Problem, Text: fmt.Sprintf("%s is world-writable (with %d more below %s)", l.Session.Local(first), n-1, checked), Fix: mend(full)})
	}
	return all, err
}

func mend(full string) string {
	return "in zkCli.sh: addauth digest USER:PASSWORD; setAcl -R " + full + " auth::cdrwa; and give --auth and --acl creator to all that use it"
}

// openBelow counts the world-writable nodes below a path, and returns the first one.
func (l lists) openBelow(ctx context.Context, full string) (first string, n int, err error) {
	queue := []string{full}
	for seen := 0; len(queue) > 0 && seen < mostChecked; {
		names, _, err := l.Epoch.Children(ctx, queue[0])
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return first, n, err
		}
		for _, name := range names[:min(len(names), mostChecked-seen)] {
			p := path.Join(queue[0], name)
			seen++
			queue = append(queue, p)
			found, err := l.worldWritable(ctx, p)
			if err != nil {
				return first, n, err
			}
			if found {
				n++
				if first == "" {
					first = p
				}
			}
		}
		queue = queue[1:]
	}
	return first, n, nil
}

// worldWritable reports whether anybody may change a node. A node that is gone, or whose list we may not read, is not open.
func (l lists) worldWritable(ctx context.Context, full string) (bool, error) {
	list, err := l.Epoch.ACL(ctx, full)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return false, nil
	}
	return session.ToAll(list) != 0, err
}
