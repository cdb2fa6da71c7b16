package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Token identifies one grant of a lock and orders it against all others: every
// grant has a token strictly greater than that of every earlier grant of the same
// path that it conflicts with, across processes, session expiries and the removal
// of the lock's directory. (Readers that hold together do not conflict, so their
// tokens say nothing about each other.)
//
// A resource that remembers the greatest token it has seen and refuses smaller
// ones is safe even from a holder that was paused, lost the lock and does not know
// it yet. [Fence] does that inside a process, [Verify] asks the servers, and in
// SQL it is one condition, with the token in a column of 25 characters that starts
// out as the zero token:
//
//	UPDATE accounts SET balance = $2, token = $1 WHERE id = $3 AND token <= $1
//
// where $1 is the token's String. No row updated means that the token is stale. The
// text has a fixed width, so comparing it as text is comparing tokens.
//
// Its field Zxid is the creation zxid of the node that was granted. It grows for the life of the
// ensemble, unlike sequence numbers, which restart with their parent node. Seq counts the changes of
// hands of that node after the grant: hand-overs inside the process, and a downgrade.
//
// Methods: Compare (-1 if granted before the other, +1 if after, 0 if they are the same grant; for
// tokens of one path), IsZero, String, and those of encoding.TextMarshaler, TextUnmarshaler,
// BinaryMarshaler (12 bytes that sort as the tokens do) and BinaryUnmarshaler.
type Token = node.Token

// ParseToken reads what the String method of a [Token] wrote and nothing else: no spaces, no
// upper case, no other width, because such a text would not sort like the token
// it stands for. The error wraps [ErrMisuse].
func ParseToken(s string) (Token, error) { return node.ParseToken(s) }
