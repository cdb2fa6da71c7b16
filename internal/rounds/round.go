package rounds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/presence"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Nodes are where the rounds are.
type Nodes struct {
	Base string // the directory, on the servers
	// Create is the operation that makes a node.
	Create func(path string, data []byte, flags int32) any
	// Apply makes a change once.
	Apply func(ctx context.Context, e *zkconn.Epoch, ops ...any) error
}

// Working is the directory of the workers' nodes.
func (n Nodes) Working() string { return n.Base + "/working" }

func (n Nodes) open(round string) string { return n.Base + "/open-" + round }

// Dir is the directory of a round.
func (n Nodes) Dir(round string) string        { return n.Base + "/round-" + round }
func (n Nodes) list(round, list string) string { return n.Dir(round) + "/list-" + list }
func (n Nodes) item(round, item string) string { return n.Dir(round) + "/item-" + item }

// Worker works on rounds. Only one goroutine at a time may use Enter and Exit, and one PartFor.
type Worker struct {
	Nodes
	Node string // its own, in Working
	List List
	// Keep is how long a round is kept after the newest change of it, once it has no worker; 0 if it ends with its last worker.
	Keep time.Duration
	// Seen is the items, by the names of their nodes, that were done when Enter joined a round that is kept for this list.
	Seen map[string]bool

	digest string
	names  []string        // of the nodes of its items
	round  string          // the present or last one
	others map[string]List // of other workers, by their digests
}

// maxFailed is how many failures the data have. The worker itself tries further items again.
const maxFailed = 1000

// even is what the data of a worker's node have if it divides evenly. Earlier versions ignore it, as a malformed failure.
const even = "even"

// Data is the data of the node of a worker where these items have failed: the digest of its list, "/even", and "/<item>.<attempt>" for
// each item.
func (w *Worker) Data(failed map[uint64]int) []byte {
	data := []byte(w.digest + "/" + even)
	for i, item := range slices.Sorted(maps.Keys(failed)) {
		if i == maxFailed {
			break
		}
		data = fmt.Appendf(data, "/%x.%d", item, failed[item])
	}
	return data
}

// parse is the reverse of Data. It leaves out what is malformed.
func parse(data string) (digest string, p Part) {
	digest, rest, _ := strings.Cut(data, "/")
	p.Failed = map[uint64]int{}
	for f := range strings.SplitSeq(rest, "/") {
		p.Even = p.Even || f == even
		item, attempt, _ := strings.Cut(f, ".")
		h, err := strconv.ParseUint(item, 16, 64)
		n, wrong := strconv.Atoi(attempt)
		if err == nil && wrong == nil {
			p.Failed[h] = n
		}
	}
	return digest, p
}

// NewWorker makes a worker with these items. Its node has this name.
func NewWorker(at Nodes, name string, items []string) *Worker {
	l, names := ListOf(items), make([]string, len(items))
	for i, item := range items {
		names[i] = layout.NodeName(item)
	}
	return &Worker{names: names, Nodes: at, Node: at.Working() + "/" + name, List: l, digest: l.digest(), others: map[string]List{}}
}

// Enter makes the worker's node with these data, in the round that is open, or in a new one, and returns that round. A worker that comes
// back in its next session goes on with its round if that is still open, even without other workers. A worker that keeps rounds goes on with
// one that is kept for it; if that is done, the error is [ErrDone]. Once leaving has ended, Enter makes no further attempt.
func (w *Worker) Enter(ctx, leaving context.Context, e *zkconn.Epoch, data []byte) (round string, err error) {
	for pace, patience := (node.Pace{Free: 2}), time.Now().Add(e.Timeout()*3/2); leaving.Err() == nil; {
		var clock int64
		if w.Keep > 0 {
			if clock, err = w.clock(ctx, e); err != nil {
				return "", err
			}
		}
		open, _, err := e.Get(ctx, w.Working())
		if errors.Is(err, zk.ErrNoNode) {
			return "", errs.Broken("the group", "another program has removed the directory of workers")
		}
		if err != nil {
			return "", err
		}
		now := string(open)
		k := kept{}
		w.Seen = nil
		if w.Keep > 0 && now != "" {
			if k, err = w.look(ctx, e, now, clock); err != nil {
				return "", err
			}
		}
		if now == "" || now != w.round && !k.ours {
			begun, err := w.begin(ctx, e, now, data)
			if err != nil || begun {
				return w.round, err
			}
		}
		// The workers of a round that is done leave, or are dead. Their round is not the one that this worker wants.
		if now != "" && !(k.over && now != w.round && time.Now().Before(patience)) {
			if joined, err := w.join(ctx, e, now, data); err != nil || joined {
				return w.round, err
			}
		}
		if err := pace.Rest(ctx, e); err != nil {
			return "", err
		}
	}
	return "", errs.ErrReleased
}

// begin begins a new round in place of an old one without workers. It reports false if that has one, or is not the present round: then
// its node open is gone. If there was no round, the version of the directory shows that there is still none: it is 1 in a round, so a
// request that comes late ends no round that is kept.
func (w *Worker) begin(ctx context.Context, e *zkconn.Epoch, old string, data []byte) (bool, error) {
	id := node.NewUUID()
	version := int32(-1)
	if old == "" {
		version = 0
	}
	ops := []any{
		&zk.DeleteRequest{Path: w.Working(), Version: version},
		w.Create(w.Working(), []byte(id), 0),
		&zk.SetDataRequest{Path: w.Working(), Data: []byte(id), Version: 0},
		w.Create(w.open(id), nil, 0),
		w.Create(w.Dir(id), nil, 0),
		w.Create(w.list(id, w.digest), w.List.encode(), 0),
		w.Create(w.Node, data, zk.FlagEphemeral),
	}
	if w.Keep > 0 {
		ops = append(ops, w.touch(id))
	}
	if old != "" {
		ops = append(ops, &zk.DeleteRequest{Path: w.open(old), Version: -1})
	}
	err := w.Apply(ctx, e, ops...)
	switch {
	case err == nil:
		w.round = id
		return true, w.bury(ctx, e, old)
	case record.Conflict(err):
		return false, nil
	}
	return false, err
}

// join makes the worker's node in a round. It reports false if the round has ended.
func (w *Worker) join(ctx context.Context, e *zkconn.Epoch, round string, data []byte) (joined bool, err error) {
	list := w.list(round, w.digest)
	worker := w.Create(w.Node, data, zk.FlagEphemeral)
	open := any(&zk.CheckVersionRequest{Path: w.open(round), Version: -1})
	if w.Keep > 0 {
		open = w.touch(round)
	}
	for {
		err = w.Apply(ctx, e, open, &zk.CheckVersionRequest{Path: list, Version: -1}, worker)
		if record.RefusedAt(err, 1, zk.ErrNoNode) {
			err = w.Apply(ctx, e, open, w.Create(list, w.List.encode(), 0), worker)
		}
		switch {
		case err == nil:
			w.round = round
			return true, nil
		case record.RefusedAt(err, 0, zk.ErrNoNode), record.RefusedAt(err, 1, zk.ErrNoNode):
			return false, nil
		case record.RefusedAt(err, 2, zk.ErrNodeExists):
			return false, presence.ErrTaken
		case record.RefusedAt(err, 1, zk.ErrNodeExists):
			continue // another worker has made the list: next time it is there, unless the round has ended
		}
		return false, err
	}
}

// Exit ends the round if it has no worker, and was never kept: the version of its node open is 0 then. It comes after the removal of the worker's node, in the same session. So of several
// workers that leave at one time, the last one to be removed finds no other.
func (w *Worker) Exit(ctx context.Context, e *zkconn.Epoch) error {
	st, there, err := e.Exists(ctx, w.Working())
	if err != nil || !there || st.NumChildren > 0 {
		return err
	}
	err = w.Apply(ctx, e, &zk.DeleteRequest{Path: w.Working(), Version: -1},
		w.Create(w.Working(), nil, 0),
		&zk.DeleteRequest{Path: w.open(w.round), Version: 0})
	if record.Conflict(err) {
		return nil // another worker has come, or has ended it, or keeps it
	}
	if err != nil {
		return err
	}
	return w.bury(ctx, e, w.round)
}

// bury removes the nodes of a round that has ended. Their names are used only once, so the deletes may be repeated. No other process
// removes them, and a worker that has begun a round takes part whatever happens here: so bury repeats what has failed.
func (n Nodes) bury(ctx context.Context, e *zkconn.Epoch, round string) error {
	if round == "" {
		return nil
	}
	r := node.Insist(ctx, e)
	for r.Next() {
		r.Err = n.remove(ctx, e, n.Dir(round))
	}
	return r.Err
}

// remove removes the directory of a round.
func (n Nodes) remove(ctx context.Context, e *zkconn.Epoch, dir string) error {
	names, _, err := e.Children(ctx, dir)
	if err != nil {
		return unlessGone(err)
	}
	for some := range slices.Chunk(names, 128) {
		calls := make([]*zkconn.Call[struct{}], len(some))
		for i, name := range some {
			calls[i] = zkconn.Start(e, zkconn.DeleteNode(dir+"/"+name))
		}
		for _, c := range calls {
			if _, err := c.Wait(ctx, e); unlessGone(err) != nil {
				return err
			}
		}
	}
	if err := e.Delete(ctx, dir); !errors.Is(err, zk.ErrNotEmpty) {
		return unlessGone(err)
	}
	return nil
}

// IsDone reports whether an item, given as the name of its node, is done. The holder of the item's lock sees what all holders
// before it have written.
func (n Nodes) IsDone(ctx context.Context, e *zkconn.Epoch, round, item string) (bool, error) {
	_, there, err := e.Exists(ctx, n.item(round, item))
	return there, err
}

// SetDone records that an item is done. If the round has ended, it does nothing.
func (w *Worker) SetDone(ctx context.Context, e *zkconn.Epoch, round, item string) error {
	ops := []any{w.Create(w.item(round, item), nil, 0)}
	if w.Keep > 0 {
		ops = append(ops, w.touch(round))
	}
	_, err := node.RepeatChange(ctx, e, ops...)
	if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// PartFor is the part of another worker, whose node has these data. It reads a list that it does not know yet. The list is empty if
// the worker is gone, and its round with it.
func (w *Worker) PartFor(ctx context.Context, e *zkconn.Epoch, data string) (p Part, err error) {
	digest, p := parse(data)
	p.List, err = w.listFor(ctx, e, digest)
	return p, err
}

func (w *Worker) listFor(ctx context.Context, e *zkconn.Epoch, digest string) (List, error) {
	if digest == w.digest {
		return w.List, nil
	}
	if l, known := w.others[digest]; known {
		return l, nil
	}
	round, _, err := e.Get(ctx, w.Working())
	if err != nil {
		return nil, unlessGone(err)
	}
	encoded, _, err := e.Get(ctx, w.list(string(round), digest))
	if err != nil {
		return nil, unlessGone(err)
	}
	w.others[digest] = decodeList(encoded)
	return w.others[digest], nil
}

// unlessGone is err, but nil for a node that does not exist.
func unlessGone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
