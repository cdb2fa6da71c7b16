package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

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

// closing is how long the end of the session may delay that of the command.
const closing = 500 * time.Millisecond

// openPaths are the findings about what anybody may change at PATH, its parents, and below it.
func (a *app) openPaths(ctx context.Context, checked string) (all []servers.Finding) {
	ctx, cancel := within(ctx, a.connectTimeout.value())
	defer cancel()
	s, err := zksync.Connect(ctx, a.target(), append(a.options(), zksync.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err == nil {
		defer func() { _ = (*session.Session)(s).CloseWithin(closing) }()
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
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, servers.Finding{Severity: servers.Note, Text: p + ", a parent of " + checked + ", is world-writable: anybody can create nodes there, and delete empty ones",
				Fix: mend(p, false)})
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
		return append(all, servers.Finding{Severity: servers.Problem, Text: checked + " is world-writable: anybody can take its locks, and remove the holds of others",
			Fix: mend(full, full != "/")}), err
	}
	first, n, more, err := l.openBelow(ctx, full)
	if more {
		all = append(all, servers.Finding{Severity: servers.Note, Text: fmt.Sprintf("only %d nodes below %s are checked", mostChecked, checked), Fix: "give --acl-check a path below it"})
	}
	if n > 0 {
		all = append(all, servers.Finding{Severity: servers.Problem, Text: fmt.Sprintf("%s is world-writable (with %d more below %s)", l.Session.Local(first), n-1, checked), Fix: mend(full, full != "/")})
	}
	return all, err
}

// mend is the command. A parent, and the root, may have nodes of other programs below it.
func mend(full string, below bool) string {
	const auth = "in zkCli.sh: addauth digest USER:PASSWORD; setAcl "
	if below {
		return auth + "-R " + full + " auth::cdrwa; and give --auth and --acl creator to all that use it"
	}
	return "if no other program creates nodes there, " + auth + full + " auth::cdrwa,world:anyone:r"
}

// openBelow counts the world-writable nodes below a path, and returns the first one; more reports that there are unread ones.
func (l lists) openBelow(ctx context.Context, full string) (first string, n int, more bool, err error) {
	queue, seen := []string{full}, 0
	for ; len(queue) > 0 && !more; queue = queue[1:] {
		names, _, err := l.Epoch.Children(ctx, queue[0])
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
			return first, n, more, err
		}
		for _, name := range names {
			if more = seen == mostChecked; more {
				break
			}
			seen++
			p := path.Join(queue[0], name)
			queue = append(queue, p)
			found, err := l.worldWritable(ctx, p)
			if err != nil {
				return first, n, more, err
			}
			if found {
				n++
				if first == "" {
					first = p
				}
			}
		}
	}
	return first, n, more, nil
}

// worldWritable reports whether anybody may change a node. A node that is gone, or whose list we may not read, is not open.
func (l lists) worldWritable(ctx context.Context, full string) (bool, error) {
	list, err := l.Epoch.ACL(ctx, full)
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return false, nil
	}
	return session.ToAll(list) != 0, err
}
