package node

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Token identifies one grant and orders it against all others of its path. Package zksync says what
// users may rely on.
type Token struct {
	// Zxid is the creation zxid of the node that was granted. It grows for the life of the
	// ensemble. Sequence numbers do not: they begin again when their parent node is made again.
	Zxid int64
	// Seq counts how often the hold of that node changed after the grant:
	// by hand-overs inside the process, by lingering, and by a downgrade.
	Seq uint32
}

const (
	tokenTextLen   = 16 + 1 + 8
	tokenBinaryLen = 8 + 4
)

// Compare returns -1 if t was granted before other, +1 if after, and 0 if they
// are the same grant. It is meaningful for tokens of one path.
func (t Token) Compare(other Token) int {
	if c := cmp.Compare(t.Zxid, other.Zxid); c != 0 {
		return c
	}
	return cmp.Compare(t.Seq, other.Seq)
}

// IsZero reports whether t is the zero Token, which no grant ever has.
func (t Token) IsZero() bool { return t == Token{} }

// String returns 16 hexadecimal digits of Zxid, a dash and 8 digits of Seq, always in
// lower case. So the texts of tokens sort as the tokens do. [ParseToken] reads it.
func (t Token) String() string { return fmt.Sprintf("%016x-%08x", uint64(t.Zxid), t.Seq) }

// ParseToken reads what [Token.String] wrote and nothing else: no spaces, no upper case, no other
// width, because such a text would not sort like its token. The error wraps [errs.ErrMisuse].
func ParseToken(s string) (Token, error) {
	if len(s) != tokenTextLen || s[16] != '-' {
		return Token{}, badToken(s, "want 16 hexadecimal digits, a dash and 8 more")
	}
	zxid, err := strconv.ParseUint(s[:16], 16, 64)
	if err != nil {
		return Token{}, badToken(s, "the first 16 characters are not hexadecimal digits")
	}
	seq, err := strconv.ParseUint(s[17:], 16, 32)
	if err != nil {
		return Token{}, badToken(s, "the last 8 characters are not hexadecimal digits")
	}
	t := Token{Zxid: int64(zxid), Seq: uint32(seq)}
	if t.Zxid < 0 {
		return Token{}, badToken(s, "the zxid is negative")
	}
	// The parser accepts upper case and signs; a token with these is not printed in the same way.
	if t.String() != s {
		return Token{}, badToken(s, "want lower case digits only")
	}
	return t, nil
}

// MarshalText returns [Token.String]. It fails on a negative Zxid, whose
// text would not sort as the token does. No server ever assigns one.
func (t Token) MarshalText() ([]byte, error) {
	if t.Zxid < 0 {
		return nil, badToken(t.String(), "the zxid is negative")
	}
	return []byte(t.String()), nil
}

// UnmarshalText is [ParseToken]. On an error t is unchanged.
func (t *Token) UnmarshalText(text []byte) error {
	parsed, err := ParseToken(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// MarshalBinary returns 12 bytes, Zxid and then Seq in big endian order, which
// sort as the tokens do. It fails on a negative Zxid, as MarshalText does.
func (t Token) MarshalBinary() ([]byte, error) {
	if t.Zxid < 0 {
		return nil, badToken(t.String(), "the zxid is negative")
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, tokenBinaryLen), uint64(t.Zxid))
	return binary.BigEndian.AppendUint32(b, t.Seq), nil
}

// UnmarshalBinary reads what MarshalBinary wrote. On an error, which wraps
// [errs.ErrMisuse], t is unchanged.
func (t *Token) UnmarshalBinary(data []byte) error {
	if len(data) != tokenBinaryLen {
		return errs.Wrap("zksync", "token", "", errs.Misuse("%d bytes, want %d", len(data), tokenBinaryLen))
	}
	parsed := Token{Zxid: int64(binary.BigEndian.Uint64(data)), Seq: binary.BigEndian.Uint32(data[8:])}
	if parsed.Zxid < 0 {
		return badToken(parsed.String(), "the zxid is negative")
	}
	*t = parsed
	return nil
}

func badToken(text, why string) error {
	return errs.Wrap("zksync", "token", text, errs.Misuse("%s", why))
}
