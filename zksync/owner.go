package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Owner names the owner of a node, for people. No decision depends on it.
type Owner struct {
	// Host is empty if it is not known.
	Host string
	// PID is 0 if it is not known.
	PID int
	// Name is that of [WithName], or the data of another library's node: at most 64 printable characters.
	Name string
}

// String is "host (pid 1, name)", with what is known, else "unknown".
func (o Owner) String() string { return node.Owner(o).String() }
