package codec

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
)

type (
	word  string
	small int8
)

// odd has methods of which one fails.
type odd struct{ n int }

func (o odd) MarshalText() ([]byte, error) {
	if o.n < 0 {
		return nil, errors.New("negative")
	}
	return []byte{byte('a' + o.n)}, nil
}

func (o *odd) UnmarshalText(b []byte) error { o.n = int(b[0]-'a') % 8; return nil }

func text[K comparable](t *testing.T, k K, want string) {
	t.Helper()
	keys, err := KeysOf[K]()
	require.NoError(t, err)
	got, err := keys.Encode(k)
	require.NoError(t, err)
	require.Equal(t, want, got)
	back, err := keys.Decode(got)
	require.NoError(t, err)
	require.Equal(t, k, back)
}

func TestKeysAreText(t *testing.T) {
	text(t, "", "")
	text(t, "\xff/", "\xff/")
	text(t, word("x"), "x")
	text(t, 7, "7")
	text(t, small(-128), "-128")
	text(t, ^uint64(0), "18446744073709551615")
	text(t, uintptr(3), "3")
	text(t, 'x', "120")
	text(t, netip.MustParseAddr("::1"), "::1")
	text(t, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "2026-01-02T03:04:05.000000006Z")
}

func refused[K comparable](t *testing.T) {
	t.Helper()
	_, err := KeysOf[K]()
	require.ErrorIs(t, err, errs.ErrMisuse)
}

func TestOtherTypesAreNoKeys(t *testing.T) {
	refused[float64](t)
	refused[bool](t)
	refused[struct{}](t)
	refused[*netip.Addr](t) // two equal ones would differ
	refused[any](t)
	refused[[2]string](t)
}

func TestTextThatIsNotThatOfAKeyIsRefused(t *testing.T) {
	ints, err := KeysOf[small]()
	require.NoError(t, err)
	for _, text := range []string{"07", "+7", "-0", "128", "x", "", "1.0"} {
		_, err := ints.Decode(text)
		require.Error(t, err, text)
	}
	odds, err := KeysOf[odd]()
	require.NoError(t, err)
	_, err = odds.Decode("z")
	require.Error(t, err)
	_, err = odds.Encode(odd{-1})
	require.ErrorIs(t, err, errs.ErrMisuse)
}
