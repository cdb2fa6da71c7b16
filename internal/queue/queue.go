package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Queue is a directory and the kind of entries that are made there.
// Goroutines may share it. It must not change after its first use.
type Queue struct {
	Client *zkconn.Client
	Log    *logs.Log                  // nil for none
	Dir    string                     // on the servers; made when it is missing
	Base   string                     // a node above Dir that is not made; "" for none. Without it the error is a *node.Refused
	Shown  string                     // the same directory as users know it, for logs and listings
	Kind   Kind                       // of the entries that are made
	Weight int64                      // how many permits they ask for; 1 for the other kinds
	Policy Policy                     // by which they are granted; nil for that of their kind, see [PolicyFor]
	ACL    []zk.ACL                   // of the entries and of the directory
	Data   func(Said) []byte          // of an entry; called for each entry that is made, with what its [Waiter] says
	Type   string                     // the name in package layout of the object whose path Dir is; "" if it is not the path of one
	Looks  *node.Looks                // what the session knows of such paths; with a Type
	Crowds *Crowds                    // what other queues of the session know; nil for none
	Config Config                     // nil unless all who queue must agree on a value
	Refuse func(names []string) error // returns an error if the names in the directory forbid to queue; nil allows all
	Check  func() []any               // what must hold when an entry is made, as checks of its transaction; if it does not, Obtain fails with [node.Refused]
	Waits  func(Entry)                // called with each entry of Obtain that may have to wait, before it does; nil for nobody
	Delay  time.Duration              // how long nobody is granted after a hold that was lost: see mark.go
	Begins func(*zkconn.Epoch)        // called in each ZooKeeper session before an attempt to hold; must not block; nil for nothing
	Open   bool                       // the entries are never sealed, because their maker writes to them
	Says   bool                       // the error of a wait that ends with its context says what it waited for, which costs a read

	// readOnlyDir is set once the servers have refused to let us write the directory's
	// data. From then on the transaction that makes an entry does not write to the
	// directory, so it returns no Stat, and a listing tells what the Stat would have told.
	readOnlyDir *atomic.Bool
	plain       func() []byte // Data of an entry without a Waiter
}

// New returns a queue that can be entered. Without a Log it logs nothing. Without Data its
// entries have no data. Without Shown the directory is shown as Dir. The Weight is at least 1.
func New(q Queue) *Queue {
	q.Weight, q.Shown = max(q.Weight, 1), cmp.Or(q.Shown, q.Dir)
	if q.Log == nil {
		q.Log = logs.New(nil)
	}
	if q.Data == nil {
		q.Data = func(Said) []byte { return nil }
	}
	q.plain = func() []byte { return q.Data(Said{}) }
	q.readOnlyDir = new(atomic.Bool)
	if q.Crowds == nil {
		q.Crowds = new(Crowds)
	}
	return &q
}

// Config is a value on which all contenders must agree and that may change: the number of permits.
// Its value is kept in a node of which the queue knows nothing.
type Config interface {
	// Learn returns the policy under the present value. It reads the value if a change may have come since the last read. It
	// fails with ErrTooBig if an entry of this weight cannot be granted.
	Learn(ctx context.Context, e *zkconn.Epoch, weight int64) (Policy, error)
	// Follow is Learn for a waiter: changed is called when the value changes after that.
	Follow(ctx context.Context, e *zkconn.Epoch, weight int64, changed func()) (*zkconn.Watch, error)
	// Check returns the operations with which the transaction that makes an entry begins. If they are refused, Learn comes first again.
	Check() []any
	// Founded is called after the first entry since a directory was made. If it fails, that entry is given up.
	Founded(ctx context.Context, e *zkconn.Epoch) error
}

// blockers returns the entries of ahead that are in the way of self, an entry of this queue.
func (q *Queue) blockers(ahead []Entry, self Entry) []Entry {
	if q.Policy != nil {
		return q.Policy(ahead, self)
	}
	return PolicyFor(self.Kind, 1)(ahead, self)
}

// blockersNow lists the entries in the way of self, after a listing of the entries ahead. A config that may have changed is read
// after the listing. So what it grants was true at the read, however soon others change the config again: entries ahead only
// leave, so no others were there at the read than the listing shows.
func (q *Queue) blockersNow(ctx context.Context, e *zkconn.Epoch, ahead []Entry, self Entry) ([]Entry, error) {
	if q.Config == nil {
		return q.blockers(ahead, self), nil
	}
	policy, err := q.Config.Learn(ctx, e, self.Weight)
	if err != nil {
		return nil, err
	}
	return policy(ahead, self), nil
}

// ErrTooBig means that an entry asks for more than there is.
var ErrTooBig = errors.New("zksync: more permits than there are")

// errList means that what is known is not enough: the directory must be listed again.
var errList = errors.New("zksync: list again")

// errResume is errList where only the watches are in doubt: the connection was lost, or one of them is used up. The set ahead
// only shrinks, so every entry ahead was listed. The watches are set again: if an entry has left
// meanwhile, it is not found, and that leads to a listing.
var errResume = fmt.Errorf("%w, if the watches do not tell", errList)
