package zkdurable

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// Below the path there is the node zkdurable, the base node, whose data is a state. Below that there are
//
//	queue          the entries of those who want the lock, as of a mutex
//	writers        those of package record
//	hold-<token>   as long as the hold with this token lasts. Its data tells the process and the Hold that opened it last
//	open-<token>   ephemeral: the process that has the hold open
//
// # Why nobody is granted while another holds
//
// A grant is one transaction. It deletes the entry of the new holder, writes the hold into the base node at the version
// at which the lock was seen free, and makes the node of the hold. The entry is below the base node. So while it exists
// nobody can have removed the base node and made it again, with versions that begin anew. And whoever has read the base
// node after the entry was made, and finds the version unchanged, finds the lock free.
//
// # Why nothing that is late ends a later hold
//
// The token is the czxid of the entry, so no other hold has the name of that node. The base node says that a hold lasts
// if and only if there is its node, because each transaction that changes one changes the other. Every change of a hold
// checks or deletes that node. So a change that is applied late finds its own hold or is refused. And a grant that
// is applied late finds its own entry or is refused.
//
// Tokens grow from hold to hold: the queue grants in the order of czxids, and the grant needs its entry.
//
// # One process has a hold open
//
// The version of the hold's node counts the times at which it was opened. A process opens the hold in one transaction
// that writes to this node, at the version that it has read, and makes the node open-<token>. The servers refuse that
// while the process before still has its node there. Each change by a Hold names the version at which it was opened.

// state is the data of the base node.
type state struct {
	Hold   *held  `json:"hold"`             // nil when the lock is free
	Before *ended `json:"before,omitempty"` // the hold before the present one, or the last one
}

// held is a hold that lasts.
type held struct {
	Token node.Token `json:"token"`
	Owner string     `json:"owner"`
	Since time.Time  `json:"since"`
	Note  string     `json:"note,omitempty"`
}

// ended is a hold that has ended. By is empty if it was not broken.
type ended struct {
	Token node.Token `json:"token"`
	Owner string     `json:"owner"`
	ID    string     `json:"id"` // names the Hold that was unlocked, or the call of Break
	By    string     `json:"by,omitempty"`
	Why   string     `json:"why,omitempty"`
}

// is reports whether the state is that of the hold with this token.
func (s state) is(token node.Token) bool { return s.Hold != nil && s.Hold.Token == token }

// broken is by whom and why a hold was broken; both are empty if it was not.
func (x *ended) broken() (by, why string) {
	if x == nil {
		return "", ""
	}
	return x.By, x.Why
}

// Limits of the texts that a hold keeps. They are in one node, and travel with many requests.
const (
	maxOwner = 1 << 10
	maxText  = 64 << 10 // of a note or a reason
)

// validOwner refuses a name that cannot be kept as it is.
func validOwner(owner string) error {
	switch {
	case owner == "":
		return fmt.Errorf("%w: the owner needs a name", zksync.ErrMisuse)
	case len(owner) > maxOwner:
		return fmt.Errorf("%w: the owner's name has %d bytes; stay within %d", zksync.ErrMisuse, len(owner), maxOwner)
	}
	return validText("owner's name", owner)
}

func validText(what, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("%w: the %s has %d bytes; stay within %d", zksync.ErrMisuse, what, len(text), maxText)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: the %s is not UTF-8: %s", zksync.ErrMisuse, what, errs.Quote(text))
	}
	return nil
}
