package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Owner names the owner of a node, for people. It is in the node's data, and [Contender] shows
// it. No decision depends on it. Host is the name of the machine, empty if it is not known. PID is
// the process id, 0 if it is not known. Name is that of [WithName], or the data that another library
// put into its node; at most 64 characters, all printable. Its String is "host (pid 1, name)", with what is known.
type Owner = node.Owner
