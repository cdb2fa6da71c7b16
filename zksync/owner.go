package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Owner names the owner of a node, for people.
type Owner struct {
	Host string
	PID  int
	// Name is that of [WithName], or another library's data: at most 64 characters.
	Name string
}

func (o Owner) String() string { return node.Owner(o).String() }
