package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Token is a fencing token. It identifies one grant of a lock and orders the grants: it is strictly greater than
// the tokens of all earlier grants of the path that it conflicts with, across processes, session expiries and the
// removal of the lock's directory.
//
// Have your storage refuse a smaller token than the greatest that it has seen. Then not even a paused holder can
// write late. [Fence] does that inside a process. In SQL it is one condition, with the token in a column of 25
// characters:
//
//	UPDATE accounts SET balance = $2, token = $1 WHERE id = $3 AND token <= $1
//
// If no row was updated, the token is stale.
type Token struct {
	// Zxid is the creation zxid of the granted node. It grows for the life of the ensemble; sequence numbers do not.
	Zxid int64
	// Seq counts the changes of the node's holder after the grant: hand-overs inside the process, and a downgrade.
	Seq uint32
}

// ParseToken reads the text of the String method of a [Token]. It refuses spaces,
// upper case and any other width, because such a text would not sort like its token.
// The error wraps [ErrMisuse].
func ParseToken(s string) (Token, error) {
	t, err := node.ParseToken(s)
	return Token(t), err
}

// Compare returns -1 if t was granted before other, +1 if after, 0 if they are the same grant. It is for tokens of one path.
func (t Token) Compare(other Token) int { return node.Token(t).Compare(node.Token(other)) }

// IsZero reports whether t is the zero Token, which no grant ever has.
func (t Token) IsZero() bool { return t == Token{} }

// String returns 16 hexadecimal digits of Zxid, a dash and 8 digits of Seq, in lower case. The texts sort like the tokens.
func (t Token) String() string { return node.Token(t).String() }

// MarshalText returns the String. It fails on a negative Zxid.
func (t Token) MarshalText() ([]byte, error) { return node.Token(t).MarshalText() }

// UnmarshalText is [ParseToken]. On an error t is unchanged.
func (t *Token) UnmarshalText(text []byte) error { return (*node.Token)(t).UnmarshalText(text) }

// MarshalBinary returns 12 bytes that sort like the tokens. It fails on a negative Zxid.
func (t Token) MarshalBinary() ([]byte, error) { return node.Token(t).MarshalBinary() }

// UnmarshalBinary reads what MarshalBinary wrote. On an error, which wraps [ErrMisuse], t is unchanged.
func (t *Token) UnmarshalBinary(data []byte) error { return (*node.Token)(t).UnmarshalBinary(data) }
