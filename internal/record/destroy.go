package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Ruin is a record that a call removes with all its nodes.
//
// # The record that was there, once
//
// Every transaction of the removal begins with a mark: see [PutMark]. So no copy of one that arrives late meets a record that was
// made since. The czxid of the base node shows in a later session whether the record is gone.
//
// # Unless it is in use
//
// A use is an ephemeral node below the base node, unless it is a writer's: a place in a line, a claim, a party. The
// transaction that ends the record deletes the directories of such nodes. The servers refuse it if one has come since they were
// listed. So either the process that comes finds no record, or the removal finds the process.
//
// # At once
//
// If one transaction has room for all nodes, that is what others see: the record with everything, or none. Otherwise the
// first transaction shuts the record: without the node Shut no process changes anything there. Then the rest goes, in several transactions, the base
// node in the last one. If the removal stops on the way, the record stays shut, and the next removal goes on.
type Ruin struct {
	Base string // the base node, on the servers
	ACL  []zk.ACL
	What string // "the queue"

	// There reports whether there is such a record. The nodes of another type are an error.
	There func(context.Context, *zkconn.Epoch) (bool, error)
	// Part reports whether a child of the base node belongs to the record; nil if all do.
	Part func(child string) bool
	// Shut is the child without which no process changes the record; "" if all nodes always fit into one transaction.
	Shut string
	// Uses says what the ephemeral nodes of the directories are, by the name of the directory: "deliveries under way".
	Uses map[string]string
	// Many reports whether the children of a directory are persistent nodes without children, too many to read each.
	Many func(dir string) bool

	founded int64 // the czxid of the base node; 0 if it is not known yet
	careful bool  // another program has made nodes where Many says that there are none
}

// Writers is the name of the directory of the writers: see package writers. Its nodes are no use.
const Writers = "writers"

// room is how many bytes of paths one transaction has room for.
const room = 256 << 10

// In removes the record through one session. It may be called again in the next one.
func (r *Ruin) In(ctx context.Context, e *zkconn.Epoch) error {
	if r.founded != 0 {
		if gone, err := r.gone(ctx, e); gone || err != nil {
			return err
		}
	} else if there, err := r.There(ctx, e); !there || err != nil {
		return err
	}
	for pace := (node.Pace{Free: 1}); ; {
		mark, err := PutMark(ctx, e, r.Base, r.ACL)
		if errors.Is(err, zk.ErrNoNode) {
			return nil // another process has removed it meanwhile
		}
		if err == nil {
			if err = r.remove(ctx, e, mark); err == nil {
				return nil
			}
			node.Settle(e, e.Reap(zkconn.Orphan{Dir: r.Base, Node: r.Base + "/" + mark}), node.Grace)
		}
		if !errors.Is(err, errUnmarked) {
			return err
		}
		if gone, failed := r.gone(ctx, e); gone || failed != nil {
			return errs.InDoubt(failed, errs.Ambiguous(err))
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// errUnmarked means that the mark is gone: with the record, or because another program has removed it.
var errUnmarked = errors.New("the mark is gone")

// MadeWith reports whether an empty node was made in the transaction that made the record which is gone.
func (r *Ruin) MadeWith(st *zk.Stat) bool { return st.Czxid == r.founded && st.NumChildren == 0 }

// gone reports whether the record is gone, as the leader knows it. There may be another one.
func (r *Ruin) gone(ctx context.Context, e *zkconn.Epoch) (bool, error) {
	if err := Synced(ctx, e, r.Base); err != nil {
		return false, err
	}
	st, there, err := e.Exists(ctx, r.Base)
	return err == nil && (!there || r.founded != 0 && st.Czxid != r.founded), err
}

// remove makes the transactions.
func (r *Ruin) remove(ctx context.Context, e *zkconn.Epoch, mark string) error {
	var rest *ruins
	for pace := (node.Pace{Free: 2}); ; {
		var err error
		if rest == nil {
			if rest, err = r.survey(ctx, e, mark); err != nil {
				return err
			}
		}
		ops, last := rest.step(r)
		_, err = node.RepeatChange(ctx, e, ops...)
		switch {
		case err == nil && last:
			return nil
		case err == nil && rest.shut && len(rest.leaves) >= len(ops): // nothing comes into a record that is shut: the rest is known
			rest.leaves = rest.leaves[len(ops)-1:]
			continue
		case err == nil:
			rest = nil
			continue
		case RefusedAt(err, 0, zk.ErrNoNode):
			return fmt.Errorf("%w: %w", errUnmarked, err)
		case !Conflict(err):
			return err
		}
		// A node has come, or has gone, since it was listed.
		rest = nil
		r.careful = r.careful || errors.Is(err, zk.ErrNotEmpty)
		if err := Synced(ctx, e, r.Base); err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// ruins are the nodes of a record that are still there.
type ruins struct {
	mark   string
	nodes  []string // those below the base node, each behind what is below it; without those of the writers
	leaves []string // those of the nodes that no other depends on, to be removed first if there are many
	writes []string // the nodes of the writers
	lines  []any    // what fails if a process begins to use a directory: its deletion, or a check of its version
	shut   bool
	bytes  int
}

// survey lists the nodes. In a record that is not shut a use is an error.
func (r *Ruin) survey(ctx context.Context, e *zkconn.Epoch, mark string) (*ruins, error) {
	names, stat, err := e.Children(ctx, r.Base)
	if errors.Is(err, zk.ErrNoNode) || err == nil && r.founded != 0 && r.founded != stat.Czxid {
		return nil, errUnmarked
	}
	if err != nil {
		return nil, err
	}
	r.founded = stat.Czxid
	all := &ruins{mark: mark, shut: r.Shut != "" && !slices.Contains(names, r.Shut)}
	names = slices.DeleteFunc(names, func(n string) bool { return n == mark })
	if err := r.below(ctx, e, all, "", names, stat); err != nil {
		return nil, err
	}
	for _, path := range slices.Concat(all.nodes, all.writes) {
		all.bytes += size(path)
	}
	return all, nil
}

// size is how much the deletion of a node adds to a request, and a little more.
func size(path string) int { return len(path) + 32 }

// below adds what is in a directory; dir is its path below the base node, "" for that.
func (r *Ruin) below(ctx context.Context, e *zkconn.Epoch, all *ruins, dir string, names []string, stat *zk.Stat) error {
	paths := make([]string, len(names))
	for i, name := range names {
		if paths[i] = r.Base + "/" + join(dir, name); dir == "" && r.Part != nil && !r.Part(name) && !node.IsUUID(name) {
			return errs.Misuse("the node %s is no part of %s; remove that first", errs.Quote(name), r.What)
		}
	}
	switch {
	case dir == Writers:
		for i, name := range names {
			if node.IsUUID(name) { // the directory of a life
				kids, _, err := e.Children(ctx, paths[i])
				if err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
				for _, kid := range kids {
					all.writes = append(all.writes, paths[i]+"/"+kid)
				}
			}
		}
		all.writes = append(all.writes, paths...)
		return nil
	case r.Many != nil && r.Many(dir) && !r.careful:
		all.nodes, all.leaves = append(all.nodes, paths...), append(all.leaves, paths...)
		return nil
	}
	var users []string
	var sessions []int64
	err := e.GetEach(ctx, paths, func(i int, c zkconn.Content) error {
		at, kids := join(dir, names[i]), []string(nil)
		owned := c.Stat.EphemeralOwner != 0
		if owned && !all.shut && !(dir == "" && node.IsUUID(names[i])) {
			users, sessions = append(users, names[i]), append(sessions, c.Stat.EphemeralOwner)
		}
		if c.Stat.NumChildren > 0 || r.Uses[at] != "" {
			var err error
			if kids, c.Stat, err = e.Children(ctx, paths[i]); errors.Is(err, zk.ErrNoNode) {
				return nil
			} else if err != nil {
				return err
			}
			if err := r.below(ctx, e, all, at, kids, c.Stat); err != nil {
				return err
			}
		} else if dir != "" {
			all.leaves = append(all.leaves, paths[i])
		}
		if all.nodes = append(all.nodes, paths[i]); at == Writers {
			return nil
		}
		if r.Uses[at] != "" && len(kids) > 0 {
			all.lines = append(all.lines, &zk.CheckVersionRequest{Path: paths[i], Version: c.Stat.Version})
		} else if r.Uses[at] != "" {
			all.lines = append(all.lines, &zk.DeleteRequest{Path: paths[i], Version: -1})
		}
		return nil
	})
	if err == nil && len(users) > 0 {
		err = r.inUse(ctx, e, dir, users, sessions)
	}
	return err
}

func join(dir, name string) string { return strings.TrimPrefix(dir+"/"+name, "/") }

// inUse is the error that names the users.
func (r *Ruin) inUse(ctx context.Context, e *zkconn.Epoch, dir string, names []string, sessions []int64) error {
	at, what := r.Base, r.Uses[dir]
	if dir != "" {
		at += "/" + dir
	}
	if what == "" { // entries of a map, whose data are values, and say nothing of an owner
		who := make([]string, len(sessions))
		for i, s := range sessions {
			who[i] = fmt.Sprintf("session 0x%x", uint64(s))
		}
		slices.Sort(who)
		who = slices.Compact(who)
		return errs.Misuse("%s is in use; %d of its entries go with %s", r.What, len(names), strings.Join(who[:min(len(who), Named)], ", "))
	}
	who, err := Call(ctx, e, at, names)
	if err != nil {
		return err
	}
	return errs.Misuse("%s is in use; %s", r.What, who.Say(fmt.Sprintf("%d %s", len(names), what)))
}

// step is the next transaction. last says that it ends the removal.
func (all *ruins) step(r *Ruin) (ops []any, last bool) {
	mark := r.Base + "/" + all.mark
	marked := []any{&zk.CheckVersionRequest{Path: mark, Version: -1}}
	shut := &zk.DeleteRequest{Path: r.Base + "/" + r.Shut, Version: -1}
	writes := deletions(all.writes)
	switch some := fitting(all.writes); {
	case all.bytes <= room || r.Shut == "":
		ops = append([]any{&zk.DeleteRequest{Path: mark, Version: -1}}, writes...)
		return append(append(ops, deletions(all.nodes)...), &zk.DeleteRequest{Path: r.Base, Version: -1}), true
	case all.shut:
		if rest := all.leaves; len(rest) > 0 {
			return append(marked, deletions(rest[:fitting(rest)])...), false
		}
		return append(marked, deletions(all.nodes[:fitting(all.nodes)])...), false
	case some < len(writes): // a process whose writer is gone makes another one
		return append(marked, writes[:some]...), false
	}
	if r.Shut != Writers {
		writes = nil
	}
	return append(append(append(marked, writes...), all.lines...), shut), false
}

func deletions(paths []string) (ops []any) {
	for _, path := range paths {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	return ops
}

// fitting is how many of the paths fit into one transaction.
func fitting(paths []string) int {
	bytes := 0
	for i, path := range paths {
		if bytes += size(path); bytes > room && i > 0 {
			return i
		}
	}
	return len(paths)
}
