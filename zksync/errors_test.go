package zksync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/stretchr/testify/require"
)

var sentinels = map[string]error{
	"ErrNotAcquired": ErrNotAcquired, "ErrLost": ErrLost, "ErrReleased": ErrReleased,
	"ErrSessionExpired": ErrSessionExpired, "ErrClosed": ErrClosed, "ErrMisuse": ErrMisuse,
	"ErrUpgrade": ErrUpgrade, "ErrBroken": ErrBroken, "ErrMaxHold": ErrMaxHold, "ErrStale": ErrStale, "ErrNotFound": ErrNotFound,
}

func TestSentinelsDifferFromEachOtherExceptThatMaxHoldIsALoss(t *testing.T) {
	for name, a := range sentinels {
		require.True(t, strings.HasPrefix(a.Error(), "zksync: "), name)
		for other, b := range sentinels {
			isLoss := name == "ErrMaxHold" && other == "ErrLost"
			require.Equal(t, name == other || isLoss, errors.Is(a, b), "errors.Is(%s, %s)", name, other)
			require.Equal(t, name == other, a == b, "%s == %s", name, other)
		}
	}
}

func TestMaxHoldIsRecognisedThroughAWrapper(t *testing.T) {
	wrapped := &Error{Op: "unlock", Path: "/a", Err: fmt.Errorf("why: %w", ErrMaxHold)}
	require.ErrorIs(t, wrapped, ErrMaxHold)
	require.ErrorIs(t, wrapped, ErrLost)
	require.NotErrorIs(t, &Error{Op: "unlock", Path: "/a", Err: ErrLost}, ErrMaxHold)
}

func TestAnErrorNamesOperationPathAndReason(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Op: "lock", Path: "/a/b", Err: context.Canceled}, "zksync: lock /a/b: context canceled"},
		{Error{Op: "connect", Path: "", Err: io.EOF}, "zksync: connect: EOF"},
		{Error{Op: "lock", Path: "/a", Err: nil}, "zksync: lock /a"},
		{Error{Op: "lock", Path: "/a", Err: ErrNotAcquired}, "zksync: lock /a: not acquired"},
		{Error{Op: "lock", Path: "/ä b", Err: io.EOF}, "zksync: lock /ä b: EOF"},
		{Error{Op: "lock", Path: "/a\nzksync: fake", Err: io.EOF}, `zksync: lock "/a\nzksync: fake": EOF`},
		{Error{Op: "do", Path: "/a", Err: &Error{Op: "unlock", Path: "/a", Err: ErrLost}}, "zksync: do /a: unlock /a: lease lost"},
	} {
		require.Equal(t, c.want, c.err.Error())
	}
}

func TestAnErrorAboutAHugePathStaysShort(t *testing.T) {
	err := &Error{Op: "lock", Path: "/" + strings.Repeat("x", 1<<20), Err: ErrMisuse}
	require.Less(t, len(err.Error()), 200)
	require.Len(t, err.Path, 1<<20+1)
}

func TestTheReasonIsReachable(t *testing.T) {
	err := fmt.Errorf("starting up: %w", &Error{Op: "lock", Path: "/a", Err: context.DeadlineExceeded})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "/a", e.Path)
}

// verdict is an error of another package that knows whether it is ambiguous.
type verdict bool

func (v verdict) Error() string   { return fmt.Sprintf("verdict %t", bool(v)) }
func (v verdict) Ambiguous() bool { return bool(v) }

func TestAmbiguousIsFoundAnywhereInTheTree(t *testing.T) {
	unknown := errs.MarkAmbiguous(io.ErrUnexpectedEOF)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nil":                                 {nil, false},
		"plain":                               {io.EOF, false},
		"every sentinel":                      {errors.Join(ErrLost, ErrMaxHold, ErrClosed), false},
		"marked":                              {unknown, true},
		"marked, then named":                  {&Error{Op: "lock", Path: "/a", Err: unknown}, true},
		"named, then marked":                  {errs.MarkAmbiguous(&Error{Op: "lock", Err: io.EOF}), true},
		"second of two joined":                {errors.Join(io.EOF, unknown), true},
		"another package's":                   {fmt.Errorf("x: %w", verdict(true)), true},
		"another package's, certain":          {fmt.Errorf("x: %w", verdict(false)), false},
		"hidden behind a certain one, joined": {errors.Join(verdict(false), verdict(true)), true},
		"an Error without a reason":           {&Error{Op: "lock"}, false},
	} {
		require.Equal(t, c.want, Ambiguous(c.err), name)
	}
}

func TestMarkingAsAmbiguousKeepsTheChainAndNil(t *testing.T) {
	require.NoError(t, errs.MarkAmbiguous(nil))
	err := errs.MarkAmbiguous(io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "unexpected EOF (it is unknown whether the servers applied it)")
}
