package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Token is a fencing token. It is strictly greater than the tokens of all earlier grants of the path that it
// conflicts with, across processes, sessions and removals of the path.
//
// Have your storage refuse a smaller token than the greatest that it has seen: then not even a paused holder
// can write late. In SQL, with the token in a column of 25 characters that compares bytes (PostgreSQL: COLLATE "C"),
// an update of no row is a stale token:
//
//	UPDATE accounts SET token = $1, balance = $2 WHERE id = $3 AND token <= $1
//
// docs/fencing.md has the rule for other stores.
type Token struct {
	// Zxid is the creation zxid of the granted node.
	Zxid int64
	// Seq counts hand-overs inside the process, and a downgrade.
	Seq uint32
}

// ParseToken reads the String of a [Token], and no other form. The error is [ErrMisuse].
func ParseToken(s string) (Token, error) {
	t, err := node.ParseToken(s)
	return Token(t), err
}

// Compare returns -1 if t was granted before other, +1 if after, else 0.
func (t Token) Compare(other Token) int { return node.Token(t).Compare(node.Token(other)) }

// IsZero reports whether t is the zero Token, which no grant has.
func (t Token) IsZero() bool { return t == Token{} }

// String returns 16 hexadecimal digits of Zxid, a dash and 8 of Seq. It sorts like the token.
func (t Token) String() string { return node.Token(t).String() }

// MarshalText returns the String.
func (t Token) MarshalText() ([]byte, error) { return node.Token(t).MarshalText() }

// UnmarshalText is [ParseToken]. On an error t is unchanged.
func (t *Token) UnmarshalText(text []byte) error { return (*node.Token)(t).UnmarshalText(text) }

// MarshalBinary returns 12 bytes that sort like the token.
func (t Token) MarshalBinary() ([]byte, error) { return node.Token(t).MarshalBinary() }

// UnmarshalBinary reads MarshalBinary's bytes. On an error, [ErrMisuse], t is unchanged.
func (t *Token) UnmarshalBinary(data []byte) error { return (*node.Token)(t).UnmarshalBinary(data) }
