package zktest

import "github.com/go-menagerie/menagerie/internal/zkserver"

// Op is a kind of request, as rules and counters see it. Variants of one operation
// count as one: Create stands for create, create2, createContainer and createTTL, GetChildren and SetWatches for
// both versions, SetAuth for SASL too.
type Op int

// The kinds of requests.
const (
	// Any stands for everything that a client's caller asks for: all operations but
	// Connect, Ping, CloseSession, SetWatches and SetAuth, which clients send on their own.
	Any Op = iota
	Create
	Delete
	Exists
	GetData
	SetData
	GetACL
	SetACL
	GetChildren
	Sync
	Check
	Multi
	MultiRead
	SetWatches
	SetAuth
	Ping
	CloseSession
	Connect
	// AddWatch asks for a persistent watch, recursive or not.
	AddWatch
	CheckWatches
	RemoveWatches
	GetEphemerals
	GetAllChildrenNumber
	WhoAmI
	Reconfig
	// Other is any operation that the server does not know.
	Other
)

var opNames = [...]string{
	"any", "create", "delete", "exists", "getData", "setData", "getACL", "setACL", "getChildren", "sync", "check",
	"multi", "multiRead", "setWatches", "setAuth", "ping", "closeSession", "connect",
	"addWatch", "checkWatches", "removeWatches",
	"getEphemerals", "getAllChildrenNumber", "whoAmI", "reconfig", "other",
}

// String returns the name of the operation in ZooKeeper's documentation.
func (o Op) String() string {
	if o < 0 || int(o) >= len(opNames) {
		return "op?"
	}
	return opNames[o]
}

var opOf = map[zkserver.Op]Op{
	zkserver.OpCreate: Create, zkserver.OpCreate2: Create, zkserver.OpCreateContainer: Create, zkserver.OpCreateTTL: Create,
	zkserver.OpDelete: Delete, zkserver.OpDeleteContainer: Delete,
	zkserver.OpExists: Exists, zkserver.OpGetData: GetData, zkserver.OpSetData: SetData,
	zkserver.OpGetACL: GetACL, zkserver.OpSetACL: SetACL,
	zkserver.OpGetChildren: GetChildren, zkserver.OpGetChildren2: GetChildren,
	zkserver.OpSync: Sync, zkserver.OpCheck: Check, zkserver.OpMulti: Multi, zkserver.OpMultiRead: MultiRead,
	zkserver.OpSetWatches: SetWatches, zkserver.OpSetWatches2: SetWatches, zkserver.OpAuth: SetAuth, zkserver.OpPing: Ping,
	zkserver.OpClose: CloseSession, zkserver.OpConnect: Connect,
	zkserver.OpAddWatch: AddWatch, zkserver.OpCheckWatches: CheckWatches, zkserver.OpRemoveWatches: RemoveWatches,
	zkserver.OpGetEphemerals: GetEphemerals, zkserver.OpGetAllChildrenNumber: GetAllChildrenNumber,
	zkserver.OpWhoAmI: WhoAmI, zkserver.OpReconfig: Reconfig, zkserver.OpSASL: SetAuth,
}

func fromWire(op zkserver.Op) Op {
	if o, ok := opOf[op]; ok {
		return o
	}
	return Other
}

// pathless tells whether requests of this kind have no path that a pattern could match.
func (o Op) pathless() bool {
	switch o {
	case Connect, Ping, CloseSession, SetAuth, WhoAmI, Reconfig, Other:
		return true
	}
	return false
}

// asked tells whether requests of this kind are what a client's caller asked for.
func (o Op) asked() bool {
	switch o {
	case Connect, Ping, CloseSession, SetWatches, SetAuth:
		return false
	}
	return true
}
