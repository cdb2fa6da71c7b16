package zkserver

// Stat is the node status of the protocol, field by field.
type Stat struct {
	Czxid          int64
	Mzxid          int64
	Ctime          int64 // milliseconds since the Unix epoch
	Mtime          int64 // milliseconds since the Unix epoch
	Version        int32
	Cversion       int32 // creates and deletes of children, as clients see it
	Aversion       int32
	EphemeralOwner int64
	DataLength     int32
	NumChildren    int32
	Pzxid          int64
}

// ID names somebody within an authentication scheme.
type ID struct {
	Scheme string
	Name   string
}

// nullName stands for a scheme or a name that a client has left out. No text that is decoded is equal to it.
const nullName = "\xff"

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
