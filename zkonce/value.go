package zkonce

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/zksync"
)

// mirror is a function that OnceFunc, OnceValue or OnceValues has returned. T is encoded as JSON.
type mirror[T any] struct {
	o     *Once
	final atomic.Pointer[final[T]] // set once

	turn chan struct{} // has room for the one call that uses the fields below
	f    func() T      // nil once it has run
	own  *outcome      // of f, if it has run here
	made T             // what f returned here
}

// final is what each further call returns, or panics with.
type final[T any] struct {
	value    T
	panicked any
}

func newMirror[T any](s *zksync.Session, path string, f func() T, opts []zksync.Option) *mirror[T] {
	return &mirror[T]{o: New(s, path, opts...), f: f, turn: make(chan struct{}, 1)}
}

func (m *mirror[T]) call() T {
	r := m.final.Load()
	if r == nil {
		call := m.o.at.Call()
		var err error
		r, err = m.ask()
		call.End(m.o.at.Named("once", err))
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.value
}

// ask asks the servers, and runs f if no process has. If f panics, so does ask.
func (m *mirror[T]) ask() (*final[T], error) {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	if r := m.final.Load(); r != nil {
		return r, nil
	}
	kept, err := m.o.once(m.run, func(v any) { m.settle(final[T]{panicked: v}) })
	var r final[T]
	switch {
	case err != nil:
	case kept.Panic != nil:
		r.panicked = *kept.Panic
	case m.own != nil && kept.By == m.own.By:
		r.value = m.made
	default:
		if err = json.Unmarshal(kept.Value, &r.value); err != nil {
			err = errs.Misuse("what is kept has another type: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return m.settle(r), nil
}

// settle makes r final, and drops f, so that the garbage collector can free it.
func (m *mirror[T]) settle(r final[T]) *final[T] {
	m.f, m.own = nil, nil
	m.made = *new(T)
	m.final.Store(&r)
	return &r
}

// run returns the outcome of f, which it calls once.
func (m *mirror[T]) run() *outcome {
	if m.own == nil {
		m.made = m.f()
		m.f = nil
		data, err := pack(m.made)
		if err != nil {
			panic(fmt.Sprintf("zkonce: the result of %s cannot be kept: %v", m.o.at.Path, err))
		}
		m.own = &outcome{By: node.NewUUID(), Value: data}
	}
	return m.own
}
