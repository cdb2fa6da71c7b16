package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Owner names the owner of a node, for people. It is in the node's data. No decision depends on it.
type Owner struct {
	// Host is the name of the machine, empty if it is not known.
	Host string
	// PID is the process id, 0 if it is not known.
	PID int
	// Name is the name of [WithName], or the data that another library put into its node: at most 64 printable characters.
	Name string
}

// String is "host (pid 1, name)", with what is known; "unknown" if nothing is.
func (o Owner) String() string { return node.Owner(o).String() }
