// The contender program enters critical sections for a while, one after the other on one path of each type, and
// prints when it was inside. A test runs it as it is today together with an older build.
//
//	contender CONNECT-STRING DURATION
//
// The files beside this one have one type each, so that an older revision, which may lack some, can be built with
// those that it has.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// enter enters the critical section of a type. The function that it returns leaves it.
type enter func(ctx context.Context) (leave func(), err error)

// types has what each file adds.
var types = map[string]func(s *zksync.Session) enter{}

// stay is one stay inside.
type stay struct {
	Type     string
	From, To int64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	d, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	s, err := zksync.Connect(context.Background(), os.Args[1])
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var mu sync.Mutex
	var stays []stay
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(types)) {
		all.Go(func() {
			for in := types[name](s); ctx.Err() == nil; {
				leave, err := in(ctx)
				if err != nil {
					if ctx.Err() == nil {
						fmt.Fprintln(os.Stderr, name, err)
						os.Exit(1)
					}
					return
				}
				now := stay{Type: name, From: time.Now().UnixNano()}
				time.Sleep(time.Millisecond)
				now.To = time.Now().UnixNano()
				leave()
				mu.Lock()
				stays = append(stays, now)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(stays)
}
