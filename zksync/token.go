package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Token is a fencing token. It identifies one grant of a lock and orders the grants. Every
// grant has a token strictly greater than that of every earlier grant of the same
// path that it conflicts with, across processes, session expiries and the removal
// of the lock's directory. (Readers that hold together do not conflict, so the order of their
// tokens means nothing.)
//
// Have your storage refuse a smaller token than the greatest it has seen. Then it is safe even from a
// holder that was paused, has lost the lock and does not know
// it yet. [Fence] does that inside a process. [Verify] asks the servers. In
// SQL it is one condition, with the token in a column of 25 characters that starts
// as the zero token:
//
//	UPDATE accounts SET balance = $2, token = $1 WHERE id = $3 AND token <= $1
//
// where $1 is the token's String. If no row was updated, the token is stale. The
// text has a fixed width, so texts compare like tokens.
//
// Its field Zxid is the creation zxid of the granted node. It grows for the life of the
// ensemble. (Sequence numbers restart with their parent node.) Seq counts the changes of
// that node's holder after the grant: hand-overs inside the process, and a downgrade.
//
// Methods: Compare (-1 if granted before the other, +1 if after, 0 if they are the same grant; for
// tokens of one path), IsZero, String, and those of encoding.TextMarshaler, TextUnmarshaler,
// BinaryMarshaler (12 bytes that sort as the tokens do) and BinaryUnmarshaler.
type Token = node.Token

// ParseToken reads the text of the String method of a [Token]. It refuses spaces,
// upper case and any other width, because such a text would not sort like its token.
// The error wraps [ErrMisuse].
func ParseToken(s string) (Token, error) { return node.ParseToken(s) }
