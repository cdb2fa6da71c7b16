//go:build !three

package sync

import (
	"sync"

	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const sessions = 1

// The types are those that users have.
type (
	Mutex     = zksync.Mutex
	RWMutex   = zkrwmutex.RWMutex
	Cond      = zkcond.Cond
	Once      = zkonce.Once
	WaitGroup = zkwaitgroup.WaitGroup
)

func NewMutex() *Mutex            { return zksync.NewMutex(play.Session(0), play.Path()) }
func NewRWMutex() *RWMutex        { return zkrwmutex.New(play.Session(0), play.Path()) }
func NewCond(l sync.Locker) *Cond { return zkcond.New(l.(zksync.Locker), play.Path()) }
func NewOnce() *Once              { return zkonce.New(play.Session(0), play.Path()) }
func NewWaitGroup() *WaitGroup    { return zkwaitgroup.New(play.Session(0), play.Path()) }
func OnceFunc(f func()) func()    { return zkonce.OnceFunc(play.Session(0), play.Path(), f) }

func OnceValue[T any](f func() T) func() T {
	return zkonce.OnceValue(play.Session(0), play.Path(), f)
}

func OnceValues[T1, T2 any](f func() (T1, T2)) func() (T1, T2) {
	return zkonce.OnceValues(play.Session(0), play.Path(), f)
}
