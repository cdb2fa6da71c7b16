// Package play gives the objects under Go's tests their sessions and their paths.
package play

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// servers starts three servers in this process, on the first use.
var servers = sync.OnceValue(func() []string { return zktest.StartEnsemble(3).Addrs() })

var sessions = [3]func() *zksync.Session{connect(0), connect(1), connect(2)}

func connect(i int) func() *zksync.Session {
	return sync.OnceValue(func() *zksync.Session {
		s, err := zksync.Connect(context.Background(), servers()[i])
		if err != nil {
			panic(err)
		}
		return s
	})
}

// Session is the session at server i, from 0 to 2.
func Session(i int) *zksync.Session { return sessions[i]() }

var paths, turns atomic.Int64

// Path is a path that no other object has.
func Path() string { return fmt.Sprintf("/gosuite/%d", paths.Add(1)) }

// Turn is which of n sessions makes the next call: each in turn.
func Turn(n int) int { return int(turns.Add(1) % int64(n)) }
