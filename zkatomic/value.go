package zkatomic

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Value is sync/atomic's Value for many machines: a value of type T, or none. Changes are made like those of
// [Int64]. Store, Swap and Delete replace a value that cannot be decoded, too.
type Value[T any] struct {
	cell *cell.Cell
	// shown is Founded of the last snapshot that this object has given, 0 before the first. After a Destroy the versions begin again.
	shown atomic.Int64
}

// NewValue names a value.
func NewValue[T any](s *zksync.Session, path string, opts ...zksync.Option) *Value[T] {
	return &Value[T]{cell: cell.New(session.NewValueAccess("zkatomic", (*session.Session)(s), path, opts), layout.Value, true)}
}

// made is v, which NewValue has made. For a zero or nil value it panics.
func (v *Value[T]) made() *Value[T] {
	if v == nil || v.cell == nil {
		panic(errs.Unmade("zkatomic", "a Value", "NewValue"))
	}
	return v
}

// Load returns the value, like [Int64.Load]; ok is false if there is none.
func (v *Value[T]) Load(ctx context.Context) (value T, ok bool, err error) {
	now, err := v.made().cell.Load(ctx, "load")
	if err == nil {
		value, ok, err = v.decode("load", now)
	}
	return value, ok, err
}

// LoadSnapshot is Load with the version, for [Value.StoreIf].
func (v *Value[T]) LoadSnapshot(ctx context.Context) (Snapshot[T], error) {
	const op = "load-snapshot"
	now, err := v.made().cell.Load(ctx, op)
	if err != nil {
		return Snapshot[T]{}, err
	}
	v.shown.Store(now.Founded)
	s := Snapshot[T]{Version: now.Version}
	s.Value, s.OK, err = v.decode(op, now)
	return s, err
}

// LoadOrStore returns the newest value, with loaded true, or else stores value and returns that.
func (v *Value[T]) LoadOrStore(ctx context.Context, value T) (actual T, loaded bool, err error) {
	const op = "load-or-store"
	next, err := v.made().encode(op, value)
	if err != nil {
		return actual, false, err
	}
	was, err := v.change(ctx, op, cell.Call{}, func(now cell.Content) (cell.Content, bool) { return next, !now.OK })
	switch {
	case err != nil:
		return actual, false, err
	case was.OK:
		return v.decode(op, was)
	}
	return value, false, nil
}

// Store sets the value.
func (v *Value[T]) Store(ctx context.Context, value T) error {
	_, err := v.made().replace(ctx, "store", value, true)
	return err
}

// Swap sets the value, and returns the one before; ok is false if there was none.
func (v *Value[T]) Swap(ctx context.Context, value T) (old T, ok bool, err error) {
	was, err := v.made().replace(ctx, "swap", value, false)
	if err == nil {
		old, ok, err = v.decode("swap", was)
	}
	return old, ok, err
}

// StoreIf sets the value if the version is still that of a [Snapshot], and reports whether it was. Also the value
// that there is gets a new version. So of several calls with one version one succeeds, and none after another
// change, or after Delete. With the version of a snapshot without a value it stores only if there was none since.
// After a [Value.Destroy] the version of the last snapshot of this object is that of no value; other numbers are taken for
// versions of the present one.
func (v *Value[T]) StoreIf(ctx context.Context, version int64, value T) (stored bool, err error) {
	const op = "store-if"
	next, err := v.made().encode(op, value)
	if err != nil {
		return false, err
	}
	known, _ := v.cell.Known()
	of := cmp.Or(v.shown.Load(), known.Founded)
	if of != 0 && known.Founded == 0 { // it is not known which value is known
		if err := v.cell.Make(ctx, op); err != nil {
			return false, err
		}
	}
	is := func(now cell.Content) bool { return now.Version == version && (of == 0 || now.Founded == of) }
	was, err := v.change(ctx, op, cell.Call{Always: true}, func(now cell.Content) (cell.Content, bool) { return next, is(now) })
	return err == nil && is(was), err
}

// replace sets the value, and returns the content before; with blind that may be an old one.
func (v *Value[T]) replace(ctx context.Context, op string, value T, blind bool) (cell.Content, error) {
	next, err := v.encode(op, value)
	if err != nil {
		return cell.Content{}, err
	}
	return v.change(ctx, op, cell.Call{Blind: blind}, func(cell.Content) (cell.Content, bool) { return next, true })
}

// Delete removes the value.
func (v *Value[T]) Delete(ctx context.Context) error {
	_, err := v.made().change(ctx, "delete", cell.Call{}, func(now cell.Content) (cell.Content, bool) { return cell.Content{}, now.OK })
	return err
}

// CompareAndSwap sets the value to new if it is old, by the encoded bytes, and reports whether it was.
func (v *Value[T]) CompareAndSwap(ctx context.Context, old, new T) (swapped bool, err error) {
	const op = "compare-and-swap"
	expected, err := v.made().encode(op, old)
	if err != nil {
		return false, err
	}
	next, err := v.encode(op, new)
	if err != nil {
		return false, err
	}
	equal := func(now cell.Content) bool { return now.OK && bytes.Equal(now.Data, expected.Data) }
	was, err := v.change(ctx, op, cell.Call{}, func(now cell.Content) (cell.Content, bool) { return next, equal(now) })
	return err == nil && equal(was), err
}

// Update sets the value to what f returns for the present one, and returns that. If the value changes
// meanwhile, f runs again, so it should have no effects of its own. If f fails, or returns the value that
// there is, nothing is written.
func (v *Value[T]) Update(ctx context.Context, f func(old T, ok bool) (T, error)) (T, error) {
	u := &update[T]{v: v.made(), f: f}
	err := v.cell.At.Run(ctx, "update", func(ctx context.Context, e *zkconn.Epoch) error { return v.cell.Change(ctx, e, u) })
	switch {
	case err == nil:
		return u.value, nil
	case errors.Is(err, errOfUser):
		err = errs.Settled(u.err)
	case u.err != nil && !errs.Ambiguous(err): // the value may have been an old one, and that could not be found out
		err = fmt.Errorf("%w; the function failed: %w", err, errs.Settled(u.err))
	}
	var zero T
	return zero, err
}

// errOfUser means that a function of the user has failed. Its error must not be taken for one of the servers.
var errOfUser = errors.New("the function failed")

// update is the plan of an Update.
type update[T any] struct {
	v     *Value[T]
	f     func(T, bool) (T, error)
	value T // that f has returned
	err   error
}

// Compute implements cell.Plan.
func (u *update[T]) Compute(now cell.Content, _ bool) (next cell.Next, err error) {
	u.err = nil
	old, ok, err := u.v.decode("update", now)
	if err != nil {
		return next, err
	}
	if u.value, u.err = u.f(old, ok); u.err != nil {
		return next, errOfUser
	}
	next.Content, err = u.v.encode("update", u.value)
	next.Write = true
	return next, err
}

// Unwritten implements cell.Plan.
func (u *update[T]) Unwritten() {}

// change makes a change of the kind of k, and returns the content before it; none after an error.
func (v *Value[T]) change(ctx context.Context, op string, k cell.Call, f func(now cell.Content) (next cell.Content, write bool)) (cell.Content, error) {
	var was cell.Content
	k.Change = func(now cell.Content) (cell.Content, bool, error) {
		was = now
		next, write := f(now)
		return next, write, nil
	}
	if err := v.cell.Do(ctx, op, &k); err != nil {
		return cell.Content{}, err // was may still be written to
	}
	return was, nil
}

// room is what the biggest request takes besides the value, the paths and the access control lists: the headers of six
// operations, and the names of nodes. That is the one that makes a writer, a value where there was none, and the gate.
const room = 1024

func (v *Value[T]) encode(op string, value T) (cell.Content, error) {
	c := v.cell
	if err := c.At.Misuse(); err != nil {
		return cell.Content{}, c.At.Named(op, err)
	}
	data, err := codec.Encode(c.At.Settings.Codec, value, room+6*len(c.Node())+3*record.ACLSize(c.At.ACL()))
	return cell.Content{Data: data, OK: true}, c.At.Named(op, err)
}

func (v *Value[T]) decode(op string, now cell.Content) (value T, ok bool, err error) {
	if !now.OK {
		return value, false, nil
	}
	value, err = codec.Decode[T](v.cell.At.Settings.Codec, now.Data, v.cell.Shown())
	return value, err == nil, v.cell.At.Named(op, err)
}
