package record

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Named is how many owners a Roll has at most: each costs a read, and takes room in a message.
const Named = 16

// Roll is who is there: the first owners, and the number of the others.
type Roll struct {
	Owners []node.Owner
	More   int
}

// Owners reads the owners of the nodes with these names in dir, many at once. It leaves out nodes that are gone.
func Owners[O node.AnyOwner](ctx context.Context, e *zkconn.Epoch, dir string, names []string) (all []O, err error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = dir + "/" + name
	}
	err = e.GetEach(ctx, paths, func(_ int, c zkconn.Content) error {
		all = append(all, O(node.Decode(c.Data).Owner))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Call is the roll of the nodes with these names in dir.
func Call(ctx context.Context, e *zkconn.Epoch, dir string, names []string) (r Roll, err error) {
	first := names[:min(len(names), Named)]
	r.More = len(names) - len(first)
	r.Owners, err = Owners[node.Owner](ctx, e, dir, first)
	return r, err
}

// String is "a, b and 2 more"; "" if nobody is known.
func (r Roll) String() string {
	names := make([]string, len(r.Owners))
	for i, o := range r.Owners {
		names[i] = o.String()
	}
	text := strings.Join(names, ", ")
	if r.More > 0 && text != "" {
		text += fmt.Sprintf(" and %d more", r.More)
	}
	return text
}

// Say is text, followed by the names if there are any: "2 of 3 have arrived: a, b".
func (r Roll) Say(text string) string {
	if names := r.String(); names != "" {
		return text + ": " + names
	}
	return text
}

// GlanceLimit is how long a look may take that comes after the context of a call has ended. With what the call may have
// to remove after that it ends less than 100 ms after its context.
const GlanceLimit = 20 * time.Millisecond

// Glance returns what look says of a wait that its context, ctx, has ended: who has come, for the error. It is "" if
// ctx lives, if the session is closed, without a connection, and if the servers do not answer at once.
func Glance(ctx context.Context, e *zkconn.Epoch, look func(context.Context) (string, error)) string {
	if ctx.Err() == nil || context.Cause(ctx) == errs.ErrClosed || !e.Linked() {
		return ""
	}
	soon, cancel := context.WithTimeout(context.Background(), GlanceLimit)
	defer cancel()
	text, err := look(soon)
	if err != nil {
		return ""
	}
	return text
}

// Saying adds to err, with which a wait has ended, what Glance has returned.
func Saying(err error, text string) error {
	if err == nil || text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
