package queue

import (
	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Each entry writes its name, without the number, into the data of the directory. So an attempt that reads them
// before it enters learns who entered last, in one small answer, however many wait, and need not list.

// readTail sends the read if it is of use: in a crowd, to an entry that asks to be alone. (A reader waits for the last
// writer, who need not be the last entry.) Without a crowd a listing costs the same, and most entries need neither.
func (q *Queue) readTail(e *zkconn.Epoch) *zkconn.Call[zkconn.Content] {
	if !q.guesses() || !q.Crowds.in(q.Dir) {
		return nil
	}
	return zkconn.Start(e, zkconn.ReadData(q.Dir))
}

func (q *Queue) guesses() bool {
	exclusive := Entry{Kind: q.Kind}.exclusive()
	return exclusive && q.Policy == nil && q.Config == nil && q.Refuse == nil && q.Delay == 0
}

// guess is the entry that is probably the last one ahead of ours: it has the name that the directory's data told, and
// the number before our own. The servers number the children of a directory in the order in which they were made.
// So if a child of this name exists when the servers begin to watch it, it is the last one ahead. If not, they say so
// at once (NotFound), and the ticket lists (events.tell).
type guess struct {
	entry    Entry
	children int32 // of the directory, right after our entry was made
}

// deep is how many children make a listing too long for every waiter.
const deep = 64

// guess returns nil if the name would be wrong, or of no use. looked is what the first attempt of a session has read
// at the path; any other may have sent a read, which is answered before the entry, if ever.
//
// The Stat of the read tells how many children were ever made. That is the number that the next one gets. If our entry
// has it, nobody has entered since the read: neither another contender, nor a duplicate of our own entry, of which
// the answer named the second. So there is no need to look for one.
//
// The departure of an entry ahead proves something only if it is the only one, or if it is
// sealed and was released. Behind any other entry a listing is needed, and is better made now.
func (q *Queue) guess(self Entry, children int32, looked *zkconn.Content, read *zkconn.Call[zkconn.Content]) *guess {
	if read != nil && read.Answered() {
		if c, err := read.Result(); err == nil {
			looked = &c
		}
	}
	if looked == nil || !q.guesses() || nearLimit(self.Seq) {
		return nil
	}
	if made(looked.Stat) != self.Seq {
		return nil
	}
	ahead, ok := ParseEntry(string(looked.Data) + formatSequence(self.Seq-1))
	if !ok || !ahead.exclusive() || children != 2 && !ahead.sealed() {
		return nil
	}
	return &guess{ahead, children}
}

// made is how many children a directory has had in all. Cversion counts the creates and the deletions, and may overflow.
func made(dir *zk.Stat) int32 { return int32(uint32(dir.Cversion+dir.NumChildren) / 2) }

// deleted is how many of them were deleted.
func deleted(dir *zk.Stat) int32 { return made(dir) - dir.NumChildren }
