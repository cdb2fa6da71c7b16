package faults_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/go-menagerie/menagerie/zksync"
)

// The specification of everything that is held in shares: a mutex is the case in which every
// acquisition is exclusive, a semaphore the one in which none is. Fencing tokens are part of it.
//
//   - acquire(token) needs room. An exclusive token is greater than every earlier one, a shared one than every
//     earlier exclusive one.
//   - release(token) that returned success needs the token to be held.
//   - release(token) that returned ErrLost needs it not to be.
//   - lost(token) is an operation of nobody's: the servers take the token away, at some time between the grant and
//     the moment at which the holder was told. So a take-over may come before the victim notices, but none
//     may come without a loss.
//   - A release of unknown outcome may happen at any time later, or never.
//
// Acquisitions that failed are left out: nobody has entered anything on an error.

type action int

const (
	acquires action = iota
	releases
	findsLost
	loses
	mayRelease
)

var actionNames = [...]string{"acquire", "release", "release, too late", "lost", "release?"}

// step is the input of an operation. The outputs are part of it, since a history only
// has operations whose outcome is known.
type step struct {
	do        action
	token     zksync.Token
	shares    int
	exclusive bool
}

// never is the return time of an operation that nobody knows the end of.
const never = math.MaxInt64

type share struct {
	token     zksync.Token
	shares    int
	exclusive bool
}

// shares is the state. It is never changed in place.
type shares struct {
	held         []share // ordered by token
	top          zksync.Token
	topExclusive zksync.Token
}

func (s shares) find(t zksync.Token) int {
	return slices.IndexFunc(s.held, func(x share) bool { return x.token == t })
}

func (s shares) without(t zksync.Token) shares {
	s.held = slices.DeleteFunc(slices.Clone(s.held), func(x share) bool { return x.token == t })
	return s
}

// room reports whether an acquisition fits.
func (s shares) room(a step, capacity int) bool {
	used := a.shares
	for _, x := range s.held {
		if x.exclusive || a.exclusive {
			return false
		}
		used += x.shares
	}
	return used <= capacity
}

func (s shares) acquire(a step, capacity int) (bool, shares) {
	newest := s.topExclusive
	if a.exclusive {
		newest = s.top
	}
	if !s.room(a, capacity) || a.token.Compare(newest) <= 0 || s.find(a.token) >= 0 {
		return false, s
	}
	s.held = append(slices.Clone(s.held), share{a.token, a.shares, a.exclusive})
	slices.SortFunc(s.held, func(x, y share) int { return x.token.Compare(y.token) })
	if a.token.Compare(s.top) > 0 {
		s.top = a.token
	}
	if a.exclusive {
		s.topExclusive = a.token
	}
	return true, s
}

func sharesModel(capacity int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return shares{} },
		Step: func(state, input, _ any) (bool, any) {
			s, a := state.(shares), input.(step)
			held := s.find(a.token) >= 0
			switch a.do {
			case acquires:
				return s.acquire(a, capacity)
			case releases:
				return held, s.without(a.token)
			case findsLost:
				return !held, s
			default: // loses, mayRelease: after the grant, and without effect after a release
				return a.token.Compare(s.top) <= 0, s.without(a.token)
			}
		},
		Equal: func(a, b any) bool {
			x, y := a.(shares), b.(shares)
			return x.top == y.top && x.topExclusive == y.topExclusive && slices.Equal(x.held, y.held)
		},
		DescribeOperation: func(input, _ any) string {
			a := input.(step)
			return fmt.Sprintf("%s %s", actionNames[a.do], a.token)
		},
		DescribeState: func(state any) string {
			var held []string
			for _, x := range state.(shares).held {
				held = append(held, x.token.String())
			}
			return "held: " + strings.Join(held, " ")
		},
	}
}
