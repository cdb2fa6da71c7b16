package door

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Monitor is a lock whose holder may wait inside, for a condition. Errors are bare reasons.
type Monitor[L any] interface {
	// Session is a *zksync.Session, nil if the lock has none.
	Session() any
	Path() string
	// Held is the lease of the hold that l is a level of; for the zero L, of what the caller
	// holds through the form without leases. It is an error if there is no such hold.
	Held(l L) (L, error)
	// Holder is the lease of whatever hold the caller may act under; the zero L without one.
	Holder() L
	// Suspend ends the hold that l is a level of, all levels of it, and makes seat in the
	// transaction that gives the lock up. It blocks until that is known, ctx ends, or the hold
	// is lost. With an error comes kept if the lock is held all the same; if that went with
	// the error, s, which has no epoch; or neither if nothing was held.
	Suspend(ctx context.Context, l L, seat Seat) (s Suspension[L], kept L, err error)
}

// Seat is the node of one who waits inside a lock.
type Seat struct {
	Dir, Node string // on the servers; Node is in Dir, ephemeral, and of a name of its own
	Data      []byte
	ACL       []zk.ACL
}

// Suspension is a hold that was given up in order to wait inside.
type Suspension[L any] interface {
	// Epoch is the one in which the seat was made, nil if it was not.
	Epoch() *zkconn.Epoch
	// Regain locks again, and restores all levels. It may be called until it succeeds;
	// the lease is that of the level that was suspended.
	Regain(ctx context.Context) (L, error)
	// Forfeit gives all levels up.
	Forfeit()
}

// Monitors tell a lock by its type: each returns the Monitor of a lock of its package, nil for
// others. Only init functions add to it.
var Monitors []func(lock any) any

// OwnOption gives a zksync.Option by this name, which every constructor reports as misuse. What is an option of one
// recipe only embeds it, and that recipe's constructor takes it out of its options by its type.
var OwnOption func(name string) any

// Own takes the options of the type Own out of opts, which are []zksync.Option.
func Own[Own, Option any](opts []Option) (own []Own, rest []Option) {
	for _, o := range opts {
		if mine, ok := any(o).(Own); ok {
			own = append(own, mine)
		} else {
			rest = append(rest, o)
		}
	}
	return own, rest
}

// OpenWith is Open with options of a lock.
var OpenWith func(s any, path string, opts any) Access

// MonitorOf is the Monitor of a lock; nil if it has none.
func MonitorOf[L any](lock any) Monitor[L] {
	for _, of := range Monitors {
		if m, ok := of(lock).(Monitor[L]); ok {
			return m
		}
	}
	return nil
}
