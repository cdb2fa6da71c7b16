package zkflight

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Forget has the cluster forget about a key, as singleflight's Forget does for a process:
// calls of Do that begin after it has returned, anywhere, run the function rather than wait
// for a run that began before it was called. That run goes on, and whoever waited for it gets its result;
// so two may run at a time, the later one with the greater token. A run that begins during the call may be shared.
//
// It blocks through disconnects until ctx ends (the error wraps the context's) or the
// session is closed (zksync.ErrClosed); it is then unknown whether the key is forgotten.
func (f *Flight[T]) Forget(ctx context.Context, key string) error {
	if err := f.door.Misuse(); err != nil {
		return f.wrap("forget", key, err)
	}
	// Queues are numbered, and the directory of the key says which one counts.
	err := f.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			err := f.forgetIn(ctx, e, key)
			if !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
				return err
			}
			if err := node.Sleep(ctx, e, pause); err != nil {
				return err
			}
		}
	})
	// Last, so that nobody who comes after this joins a call that waits for the old run.
	f.mu.Lock()
	delete(f.calls, key)
	f.mu.Unlock()
	return f.wrap("forget", key, err)
}

func (f *Flight[T]) forgetIn(ctx context.Context, e *zkconn.Epoch, key string) error {
	dir := f.path + "/" + nodeName(key)
	full := f.door.Full(dir)
	if err := e.Sync(ctx, full); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	data, st, err := e.Get(ctx, full)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // nobody runs, or waits
	}
	if err != nil {
		return err
	}
	g, err := parseGeneration(dir, data)
	if err != nil {
		return err
	}
	names, _, err := e.Children(ctx, full+"/"+strconv.FormatInt(g, 10)+"/lock")
	if errors.Is(err, zk.ErrNoNode) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := json.Marshal(keyState{Generation: g + 1})
	if err != nil {
		return err
	}
	_, err = e.StartMulti(&zk.SetDataRequest{Path: full, Data: next, Version: st.Version}).Wait(ctx, e)
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return nil // somebody else did it since, or all have left
	}
	if err == nil {
		f.remember(key, g+1)
	}
	return err
}

// generation is the one to begin with.
func (f *Flight[T]) generation(key string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.generations[key]
}

// remembered bounds what is remembered of keys.
const remembered = 1024

func (f *Flight[T]) remember(key string, g int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g == 0 {
		delete(f.generations, key)
		return
	}
	if len(f.generations) >= remembered {
		clear(f.generations)
	}
	f.generations[key] = g
}

// move goes to the generation that counts.
func (p *passenger[T]) move(g int64) error {
	p.generation = g
	p.f.remember(p.key, g)
	return errMoved
}
