package node

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawToken draws tokens close enough to each other to collide, and some far away.
func drawToken(t *rapid.T, label string) Token {
	zxid := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, math.MaxInt64))
	seq := rapid.OneOf(rapid.Uint32Range(0, 3), rapid.Uint32())
	return Token{Zxid: zxid.Draw(t, label+".zxid"), Seq: seq.Draw(t, label+".seq")}
}

func TestTokensSortAsNumbersAsTextAndAsBytesAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawToken(t, "a"), drawToken(t, "b")
		binA, err := a.MarshalBinary()
		require.NoError(t, err)
		binB, err := b.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, a.Compare(b), strings.Compare(a.String(), b.String()))
		require.Equal(t, a.Compare(b), bytes.Compare(binA, binB))
		require.Equal(t, a.Compare(b), -b.Compare(a))
		require.Equal(t, a == b, a.Compare(b) == 0)
	})
}

func TestATokenSurvivesEveryEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawToken(t, "token")
		parsed, err := ParseToken(want.String())
		require.NoError(t, err)
		require.Equal(t, want, parsed)

		var fromBinary Token
		data, err := want.MarshalBinary()
		require.NoError(t, err)
		require.Len(t, data, 12)
		require.NoError(t, fromBinary.UnmarshalBinary(data))
		require.Equal(t, want, fromBinary)

		var fromJSON map[string]Token
		data, err = json.Marshal(map[string]Token{"token": want})
		require.NoError(t, err)
		require.JSONEq(t, `{"token":"`+want.String()+`"}`, string(data))
		require.NoError(t, json.Unmarshal(data, &fromJSON))
		require.Equal(t, want, fromJSON["token"])
	})
}

func TestAZxidOutweighsAnySeq(t *testing.T) {
	older := Token{Zxid: 7, Seq: math.MaxUint32}
	newer := Token{Zxid: 8}
	require.Equal(t, -1, older.Compare(newer))
	require.Equal(t, 1, newer.Compare(older))
	require.Equal(t, "0000000000000007-ffffffff", older.String())
}

func TestOnlyTheZeroTokenIsZero(t *testing.T) {
	require.True(t, Token{}.IsZero())
	require.False(t, Token{Seq: 1}.IsZero())
	require.False(t, Token{Zxid: 1}.IsZero())
}

func TestTextThatIsNoTokenIsRefusedAndChangesNothing(t *testing.T) {
	for _, text := range []string{
		"", "0", "-",
		"0000000000000001", "0000000000000001-", "0000000000000001-0000000", "0000000000000001-000000000",
		"0000000000000001_00000000", "000000000000001-000000000",
		"000000000000000A-00000000", "0000000000000001-0000000F",
		"+000000000000001-00000000", "0000000000000001-+0000000", "0x00000000000001-00000000",
		" 000000000000001-00000000", "0000000000000001-0000000\n", "000000000000000g-00000000",
		"8000000000000000-00000000", "ffffffffffffffff-00000000",
	} {
		token := Token{Zxid: 5, Seq: 6}
		require.ErrorIs(t, token.UnmarshalText([]byte(text)), errs.ErrMisuse, "%q", text)
		require.Equal(t, Token{Zxid: 5, Seq: 6}, token)
		_, err := ParseToken(text)
		require.ErrorIs(t, err, errs.ErrMisuse, "%q", text)
	}
}

func TestBytesThatAreNoTokenAreRefusedAndChangeNothing(t *testing.T) {
	negative := append([]byte{0x80}, make([]byte, 11)...)
	for _, data := range [][]byte{nil, make([]byte, 11), make([]byte, 13), negative} {
		token := Token{Zxid: 5, Seq: 6}
		require.ErrorIs(t, token.UnmarshalBinary(data), errs.ErrMisuse, "%x", data)
		require.Equal(t, Token{Zxid: 5, Seq: 6}, token)
	}
}

func TestANegativeZxidIsNotMarshalled(t *testing.T) {
	_, err := Token{Zxid: -1}.MarshalText()
	require.ErrorIs(t, err, errs.ErrMisuse)
	_, err = Token{Zxid: -1}.MarshalBinary()
	require.ErrorIs(t, err, errs.ErrMisuse)
}

func TestAHugeTextIsNotRepeatedInTheError(t *testing.T) {
	_, err := ParseToken(strings.Repeat("x", 1<<20))
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.Less(t, len(err.Error()), 250)
}

func FuzzParseToken(f *testing.F) {
	f.Add("0000000000000000-00000000")
	f.Add("000000010000002a-00000003")
	f.Add("7fffffffffffffff-ffffffff")
	f.Add("80000000000000000-0000000")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			require.Equal(t, Token{}, token)
			return
		}
		require.Equal(t, text, token.String())
		require.GreaterOrEqual(t, token.Zxid, int64(0))
	})
}
