package zksync

import "github.com/go-menagerie/menagerie/internal/node"

// Owner tells people who holds or waits: it is written into the node and shown by the Contenders
// calls. Nothing is decided by it. Host is the name of the machine, empty if it is not known. PID is
// the process id, 0 if it is not known. Name is what [WithName] set, or the data that another library
// put into its node; at most 64 characters, all printable.
type Owner = node.Owner
