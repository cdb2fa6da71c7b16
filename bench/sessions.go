package bench

import (
	"cmp"
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// openAll opens n sessions at once. With an error it closes those that are open. All go to the same servers, so one error
// says it for all.
func openAll[T any](n int, open func() (T, error), end func(T)) ([]T, error) {
	all, errs := make([]T, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = open() })
	}
	wg.Wait()
	err := cmp.Or(errs...)
	if err == nil {
		return all, nil
	}
	for i := range all {
		if errs[i] == nil {
			end(all[i])
		}
	}
	return nil, err
}

func closeAll[T any](all []T, end func(T)) {
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() { end(c) })
	}
	wg.Wait()
}

// together runs f for each client at once.
func together[T any](ctx context.Context, all []T, f func(ctx context.Context, c T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range all {
		group.Go(func() error { return f(ctx, c) })
	}
	return group.Wait()
}
