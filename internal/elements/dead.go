package elements

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Letter is a dead letter: an element that no consumer gets.
type Letter struct {
	ID   string // that of the element
	Data []byte // its value
	Died time.Time
	header
}

// header is the first line of a letter's node. The value follows, as it was: in JSON, a value that just fits would not fit.
type header struct {
	Why      string `json:"err"`
	Attempts int    `json:"attempts"`
	Enqueued int64  `json:"enqueued"` // by the servers' clock, in milliseconds
	Priority int    `json:"priority,omitempty"`
}

// longestWhy is how many bytes of the reason are kept. In JSON each may take six, for which Overhead has room.
const longestWhy = 2 << 10

// ErrNoLetter means that there is no dead letter with an ID.
var ErrNoLetter = errors.New("there is no dead letter with this ID")

// letter is the path of a dead letter.
func (q *Queue) letter(id string) string { return q.dir(layout.DeadLetters) + "/" + id }

// bury makes an element a dead letter in the transaction that begins with ops. It makes the directory before the first one.
func (c *Call) bury(ops []any, el Content, why string, attempts int) error {
	why = strings.ToValidUTF8(why[:min(len(why), longestWhy)], "")
	line, err := json.Marshal(header{why, attempts, el.enqueued(), el.priority})
	if err != nil {
		return err
	}
	data := slices.Concat(line, []byte("\n"), el.Data)
	ops = append(ops, &zk.CreateRequest{Path: c.q.letter(el.ID()), Data: data, Acl: c.q.at.ACL()})
	_, err = c.apply(ops...)
	for record.RefusedAt(err, len(ops)-1, zk.ErrNoNode) {
		dir := &zk.CreateRequest{Path: c.q.dir(layout.DeadLetters), Acl: c.q.at.ACL()}
		if _, err = c.apply(dir); err == nil || record.RefusedAt(err, 0, zk.ErrNodeExists) {
			_, err = c.apply(ops...)
		}
	}
	if err == nil {
		c.q.gone(el.name)
	}
	return err
}

// Bury makes an element a dead letter that no call has claimed. The error is ErrChanged if it is claimed, or has changed.
func (c *Call) Bury(el Content, why string) error {
	ops := c.q.unchanged(el.Pick)
	checks := len(ops)
	ops = append(append(ops, c.q.free(el)...), &zk.DeleteRequest{Path: c.q.node(el.name), Version: el.version})
	return refused(c.bury(ops, el, why, el.Attempt()), checks)
}

// Letters are the IDs of the dead letters as the leader knew them at some instant of the call, in the order in which the
// elements were put.
func (c *Call) Letters() ([]string, error) {
	dir := c.q.dir(layout.DeadLetters)
	if err := record.Synced(c, c.Epoch, dir); err != nil {
		return nil, err
	}
	ids, _, err := c.Epoch.Children(c, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
	})
	return ids, err
}

// number is the sequence number in an ID; those that do not give the order come last.
func number(id string) uint32 {
	seq, ok := queue.ParseSequence(id[strings.LastIndexByte(id, '.')+1:])
	if !ok {
		seq = -1
	}
	return uint32(seq)
}

// CountLetters is how many dead letters there are.
func (c *Call) CountLetters() (int, error) { return c.count(layout.DeadLetters) }

// ReadLetter reads a dead letter as the leader knows it. The error is ErrNoLetter if it is gone.
func (c *Call) ReadLetter(id string) (l Letter, err error) {
	if err := record.Synced(c, c.Epoch, c.q.letter(id)); err != nil {
		return l, err
	}
	all, err := c.ReadLetters(id)
	if err == nil && len(all) == 0 {
		err = ErrNoLetter
	}
	if err != nil {
		return l, err
	}
	return all[0], nil
}

// ReadLetters reads dead letters, and leaves out those that are gone.
func (c *Call) ReadLetters(ids ...string) (all []Letter, err error) {
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = c.q.letter(id)
	}
	err = c.Epoch.GetEach(c, paths, func(i int, now zkconn.Content) error {
		l := Letter{ID: ids[i], Data: now.Data, Died: time.UnixMilli(now.Stat.Ctime)}
		line, value, found := bytes.Cut(now.Data, []byte("\n"))
		if found && json.Unmarshal(line, &l.header) == nil {
			l.Data = value
		} // else another program has made it
		all = append(all, l)
		return nil
	})
	return all, err
}

// RemoveLetter removes a dead letter. The error is ErrNoLetter if it is gone.
func (c *Call) RemoveLetter(id string) error {
	_, err := c.apply(&zk.DeleteRequest{Path: c.q.letter(id), Version: -1})
	if record.RefusedAt(err, 0, zk.ErrNoNode) || errors.Is(err, ErrChanged) { // there was no queue any more
		return ErrNoLetter
	}
	return err
}
