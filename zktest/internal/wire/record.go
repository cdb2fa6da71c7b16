package wire

import "github.com/go-menagerie/menagerie/internal/jute"

// Stat is the node status of the protocol.
type Stat = jute.Stat

// ID names somebody within an authentication scheme.
type ID struct {
	Scheme string
	Name   string
}

// NullName stands for a scheme or a name that a client has left out. No text that is decoded is equal to it.
const NullName = "\xff"

// ACL grants permissions to an ID.
type ACL struct {
	Perms int32
	ID    ID
}

// Permission bits of an ACL.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// OpenACL grants everything to everybody.
func OpenACL() []ACL {
	return []ACL{{Perms: PermAll, ID: ID{Scheme: "world", Name: "anyone"}}}
}
