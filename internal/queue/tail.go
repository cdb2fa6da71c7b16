package queue

import (
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Each entry writes its name, without the number, into the data of the directory. So whoever enters reads there who
// entered last, in one small answer whose size does not depend on how many wait, and need not list.

// tail is a read of the directory's data that was sent just before an entry. nil if there was none.
type tail struct{ read *zkconn.Call[zkconn.Content] }

// readTail sends the read if it is of use: in a crowd, to an entry that asks to be alone. (A reader waits for the last
// writer, who need not be the last entry.) Without a crowd a listing costs the same, and most entries need neither.
func (q *Queue) readTail(e *zkconn.Epoch) *tail {
	exclusive := Entry{Kind: q.Kind}.exclusive()
	if !exclusive || q.Policy != nil || q.Config != nil || q.Refuse != nil || q.Delay > 0 || !q.Crowds.in(q.Dir) {
		return nil
	}
	return &tail{zkconn.Start(e, zkconn.ReadData(q.Dir))}
}

// guess is the entry that is probably the last one ahead of ours: it has the name that the directory's data told, and
// the number before our own. The servers number the children of a directory in the order in which they were made.
// So if a child of this name exists when the servers begin to watch it, it is the last one ahead. If not, they say so
// at once (NotFound), before they confirm the watch of the own node, and so the ticket lists (events.tell).
type guess struct {
	entry    Entry
	children int32 // of the directory, right after our entry was made
}

// deep is how many children make a listing too long for everybody who waits for some time.
const deep = 64

// guess returns nil if the name would be wrong, or of no use. The read is answered before the entry, if at all.
//
// The Stat of the read tells how many children were ever made. That is the number that the next one gets. If our entry
// has it, nobody has entered since the read: neither another contender, nor a duplicate of our own entry, of which
// the answer named the second. So there is no need to look for one.
//
// The departure of an entry ahead proves something only if it is the only one, or if it is
// sealed and was released. Behind any other entry a listing is needed, and is better made now.
func (t *tail) guess(self Entry, children int32) *guess {
	if t == nil || !t.read.Answered() {
		return nil
	}
	last, err := t.read.Result()
	if err != nil || nearLimit(self.Seq) || made(last.Stat) != self.Seq {
		return nil
	}
	ahead, ok := ParseEntry(string(last.Data) + formatSequence(self.Seq-1))
	if !ok || !ahead.exclusive() || children != 2 && !ahead.sealed() {
		return nil
	}
	return &guess{ahead, children}
}

// view is what the guess tells of the queue.
func (g *guess) view() view {
	ahead := []Entry{g.entry}
	return view{ahead: ahead, blockers: ahead, more: g.children > 2, shallow: 2 < g.children && g.children <= deep}
}

// made is how many children of a directory were ever made. Cversion counts these and the deletions, and may overflow.
func made(dir *zk.Stat) int32 { return int32(uint32(dir.Cversion+dir.NumChildren) / 2) }
