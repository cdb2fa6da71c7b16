package faults_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkqueue"
)

// errNotYet is the error of a look at something that has not happened yet.
var errNotYet = errors.New("not yet")

// workers has one client put good and bad elements, all together, and redrive a dead letter, and the other one work on them. In the end each
// good one was acknowledged, and each bad one is one dead letter.
func workers(r *round) {
	var puts ledger
	a, b := zkqueue.New[string](r.a.s, site), zkqueue.New[string](r.b.s, site)
	good, bad := []string{"good 0", "good 1"}, []string{"bad 0", "bad 1"}
	finished, finish := context.WithCancel(context.Background())
	r.party(0, func() {
		defer finish()
		puts.enters(r.a, "all", func(ctx context.Context) error { return a.PutAll(ctx, slices.Concat(good, bad)) })
		handled := func() {
			for i := range 60 { // a request that is held is held for longer than another blow lasts
				if r.a.does("Len", func(ctx context.Context) error {
					n, err := a.Len(ctx)
					if err == nil && n > 0 {
						err = errNotYet
					}
					return err
				}, errNotYet) == nil || r.over() {
					return
				}
				time.Sleep(time.Duration(i) * 10 * ms)
			}
			r.wrong("the elements are not worked on")
		}
		handled()
		_ = r.a.does("Redrive", func(ctx context.Context) error {
			for d, err := range a.Dead().All(ctx) {
				if err == nil {
					err = a.Dead().Redrive(ctx, d.ID)
				}
				return err
			}
			return nil
		})
		handled()
	})
	var mu sync.Mutex
	var done []string
	r.party(3*ms, func() {
		for finished.Err() == nil && !r.over() {
			_ = r.b.does("Work", func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(finished, cancel)()
				return b.Work(ctx, 2, func(_ context.Context, d *zkqueue.Delivery[string]) error {
					if strings.HasPrefix(d.Value, "bad") {
						return errors.New("it is bad")
					}
					mu.Lock()
					defer mu.Unlock()
					done = append(done, d.Value)
					return nil
				}, zkqueue.WithMaxAttempts(3), zkqueue.WithBackOff(2*ms, 4*ms))
			})
		}
	})
	r.checks(func() {
		q := zkqueue.New[string](r.last.s, site)
		left := ends(r, func(ctx context.Context) ([]string, error) { return q.Drain(ctx, 10) })
		dead := ends(r, func(ctx context.Context) (all []string, err error) {
			for d, err := range q.Dead().All(ctx) {
				if err != nil {
					return nil, err
				}
				all = append(all, strings.Trim(string(d.Data), `"`))
			}
			return all, nil
		})
		slices.Sort(dead)
		if len(puts.sure) == 0 && len(dead) == 0 && len(done) == 0 && len(left) == 0 {
			return // nothing was put, and nobody knows that it was
		}
		if fmt.Sprint(dead, left) != fmt.Sprint(bad, []string{}) {
			r.wrong("%v are dead, %v are left", dead, left)
		}
		for _, v := range good {
			if !slices.Contains(done, v) {
				r.wrong("%s is gone, and was not done: %v", v, done)
			}
		}
	})
}
