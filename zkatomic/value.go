package zkatomic

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/cell"
	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Value is sync/atomic's Value for many machines: a value of type T, or none. It is safe for use by many goroutines.
//
// The methods that change it block, fail and cost like those of [Int64]. Values are encoded as JSON, unless
// zksync.WithCodec says something else. A value that cannot be encoded, or is too big for a request (1 MB), is
// zksync.ErrMisuse. A value on the servers that cannot be decoded is an error that names its node; Store, Swap and Delete
// replace it. (Swap has replaced it then, and its error tells only of the old one.)
type Value[T any] struct{ cell *cell.Cell }

// NewValue names a value by a path of its own, which is created when it is first changed or watched. NewValue does no I/O.
// The first call reports a malformed path, a nil session, or an option that is not one of WithCodec, WithACL and WithName,
// as zksync.ErrMisuse.
func NewValue[T any](s *zksync.Session, path string, opts ...zksync.Option) *Value[T] {
	return &Value[T]{cell.New(session.NewValueAccess((*session.Session)(s), path, opts), layout.Value, true)}
}

// made is v, which NewValue has made. Of a zero or nil value it panics.
func (v *Value[T]) made() *Value[T] {
	if v == nil || v.cell == nil {
		panic(errs.Unmade("a Value", "NewValue"))
	}
	return v
}

// Load returns the value, as the server of this session knows it; ok is false if there is none. That is never older
// than what this object has read or written before, but it may lack the newest changes of other processes.
//
// It blocks for the answer, through disconnects and new sessions, until ctx ends. If the session is closed, the error
// is zksync.ErrClosed. It costs one request (three if nobody has used the path), and creates nothing.
func (v *Value[T]) Load(ctx context.Context) (value T, ok bool, err error) {
	now, err := v.made().cell.Load(ctx)
	if err == nil {
		value, ok, err = v.decode(now)
	}
	return value, ok, v.wrap("load", err)
}

// Store sets the value.
func (v *Value[T]) Store(ctx context.Context, value T) error {
	_, err := v.made().replace(ctx, value, true)
	return v.wrap("store", err)
}

// Swap sets the value, and returns what it was before; ok is false if there was none.
func (v *Value[T]) Swap(ctx context.Context, value T) (old T, ok bool, err error) {
	was, err := v.made().replace(ctx, value, false)
	if err == nil {
		old, ok, err = v.decode(was)
	}
	return old, ok, v.wrap("swap", err)
}

// Delete removes the value. If there is none, it changes nothing.
func (v *Value[T]) Delete(ctx context.Context) error {
	_, err := v.made().change(ctx, false, func(now cell.Content) (cell.Content, bool) { return cell.Content{}, now.OK })
	return v.wrap("delete", err)
}

// CompareAndSwap sets the value to new if it is old, and reports whether it was. It compares the encoded bytes. No value is
// equal to none.
func (v *Value[T]) CompareAndSwap(ctx context.Context, old, new T) (swapped bool, err error) {
	swapped, err = v.made().compareAndSwap(ctx, old, new)
	return swapped, v.wrap("compare-and-swap", err)
}

func (v *Value[T]) compareAndSwap(ctx context.Context, old, new T) (bool, error) {
	expected, err := v.encode(old)
	if err != nil {
		return false, err
	}
	next, err := v.encode(new)
	if err != nil {
		return false, err
	}
	equal := func(now cell.Content) bool { return now.OK && bytes.Equal(now.Data, expected.Data) }
	was, err := v.change(ctx, false, func(now cell.Content) (cell.Content, bool) { return next, equal(now) })
	return err == nil && equal(was), err
}

// Update sets the value to what f returns for the present one, and returns that. If the value changes meanwhile, f is called
// again, so it should have no effects of its own. It runs in the goroutine of the caller, and may take its time; but
// while others change the value often, an f that takes more than a second may be called many times. If f returns an
// error, Update changes nothing, and returns that error as it is. If f returns the value that there is, nothing is
// written, and no Watch is woken.
func (v *Value[T]) Update(ctx context.Context, f func(old T, ok bool) (T, error)) (T, error) {
	u := &update[T]{v: v.made(), f: f}
	err := v.cell.At.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error { return v.cell.Change(ctx, e, u) })
	switch {
	case errors.Is(err, errOfUser):
		err = errs.Settled(u.err)
	case err == nil:
		return u.value, nil
	case u.err != nil && !errs.Ambiguous(err): // the value may have been an old one, and that could not be found out
		err = v.wrap("update", fmt.Errorf("%w; the function failed: %w", err, errs.Settled(u.err)))
	default:
		err = v.wrap("update", err)
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
	old, ok, err := u.v.decode(now)
	if err != nil {
		return next, err
	}
	if u.value, u.err = u.f(old, ok); u.err != nil {
		return next, errOfUser
	}
	next.Content, err = u.v.encode(u.value)
	next.Write = true
	return next, err
}

// Unwritten implements cell.Plan.
func (u *update[T]) Unwritten() {}

// replace sets the value, and returns the content before; with blind that may be an old one.
func (v *Value[T]) replace(ctx context.Context, value T, blind bool) (cell.Content, error) {
	next, err := v.encode(value)
	if err != nil {
		return cell.Content{}, err
	}
	return v.change(ctx, blind, func(cell.Content) (cell.Content, bool) { return next, true })
}

// change makes a change, and returns the content before it; none after an error.
func (v *Value[T]) change(ctx context.Context, blind bool, f func(now cell.Content) (next cell.Content, write bool)) (cell.Content, error) {
	var was cell.Content
	err := v.cell.Do(ctx, &cell.Call{Blind: blind, Change: func(now cell.Content) (cell.Content, bool, error) {
		was = now
		next, write := f(now)
		return next, write, nil
	}})
	if err != nil {
		return cell.Content{}, err // was may still be written to: nobody reads it
	}
	return was, nil
}

// room is what the biggest request takes besides the value, the paths and the access control lists: the headers of six
// operations, and the names of nodes. That is the one that makes a writer, a value where there was none, and the gate.
const room = 1024

func (v *Value[T]) encode(value T) (cell.Content, error) {
	c := v.cell
	if err := c.At.Misuse(); err != nil {
		return cell.Content{}, err
	}
	data, err := codec.Encode(c.At.Settings.Codec, value, room+6*len(c.Node())+3*record.ACLSize(c.At.ACL()))
	return cell.Content{Data: data, OK: true}, err
}

func (v *Value[T]) decode(now cell.Content) (value T, ok bool, err error) {
	if !now.OK {
		return value, false, nil
	}
	value, err = codec.Decode[T](v.cell.At.Settings.Codec, now.Data, v.cell.Shown())
	return value, err == nil, err
}

func (v *Value[T]) wrap(op string, err error) error { return errs.Wrap(op, v.cell.At.Path, err) }
