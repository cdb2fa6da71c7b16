package share

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// losing is a ticket of q whose loss has begun: nobody has been told yet.
func losing(q *queue.Queue) *queue.Ticket {
	p := &queue.Ticket{Epoch: &zkconn.Epoch{}}
	p.Retire()
	return p
}

// The first thing that a loss does is to mark the ticket. Whoever is granted that ticket
// afterwards may be overlooked by what the loss does next, which looks for the holder once.
func TestNothingIsGrantedOnATicketWhoseLossIsOnItsWay(t *testing.T) {
	ask := func(f func(context.Context, bool) (*lease.Lease, error)) (*lease.Lease, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return f(ctx, false)
	}
	mutex := func() *Cohort {
		return NewCohort(session.NewAccess[session.Option](session.None(), "/a", nil), queue.KindLock)
	}
	for name, granted := range map[string]func() (*lease.Lease, error){
		"try": func() (*lease.Lease, error) {
			c := mutex()
			c.state, c.grant = lingering, &grant{ticket: losing(c.q), timer: time.NewTimer(time.Hour)}
			return ask(c.Try)
		},
		"acquire": func() (*lease.Lease, error) {
			c := mutex()
			c.state, c.grant = lingering, &grant{ticket: losing(c.q), timer: time.NewTimer(time.Hour)}
			return ask(c.Acquire)
		},
		"readers": func() (*lease.Lease, error) {
			r := NewReaders(mutex())
			r.current = &batch{state: held, ticket: losing(r.q), until: time.Now().Add(time.Hour), holds: map[*lease.Lease]struct{}{}}
			return ask(r.Acquire)
		},
		"a reader's try": func() (*lease.Lease, error) {
			r := NewReaders(mutex())
			r.current = &batch{state: held, ticket: losing(r.q), until: time.Now().Add(time.Hour), holds: map[*lease.Lease]struct{}{}}
			return ask(r.Try)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := granted()
				require.Nil(t, l, "a lease of a ticket that is being lost")
				require.Error(t, err)
			})
		})
	}
}
