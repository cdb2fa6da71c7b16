package zktest

import (
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Op is a kind of request. Variants of an operation count as one: create2 is a Create.
type Op int

// The kinds of requests.
const (
	// Any stands for all requests of a client's caller: not Connect, Ping, CloseSession, SetWatches, SetAuth
	// and the syncs of [WithHeartbeat].
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
	// AddWatch asks for a persistent watch.
	AddWatch
	CheckWatches
	RemoveWatches
	GetEphemerals
	GetAllChildrenNumber
	WhoAmI
	Reconfig
	// Other is an operation that the server does not know.
	Other

	// AnyEvent stands for all watch events, which only rules see: [Rule.Lose].
	AnyEvent
	// EventCreated: a node was created.
	EventCreated
	// EventDeleted: a node was deleted.
	EventDeleted
	// EventDataChanged: a node has new data.
	EventDataChanged
	// EventChildrenChanged: a child came or went.
	EventChildrenChanged
)

var opNames = [...]string{
	"any", "create", "delete", "exists", "getData", "setData", "getACL", "setACL", "getChildren", "sync", "check",
	"multi", "multiRead", "setWatches", "setAuth", "ping", "closeSession", "connect",
	"addWatch", "checkWatches", "removeWatches",
	"getEphemerals", "getAllChildrenNumber", "whoAmI", "reconfig", "other",
	"event", "nodeCreated", "nodeDeleted", "nodeDataChanged", "nodeChildrenChanged",
}

// String is the name of the operation.
func (o Op) String() string {
	if o < 0 || int(o) >= len(opNames) {
		return "op?"
	}
	return opNames[o]
}

var opOf = map[wire.Op]Op{
	wire.OpCreate: Create, wire.OpCreate2: Create, wire.OpCreateContainer: Create, wire.OpCreateTTL: Create,
	wire.OpDelete: Delete, wire.OpDeleteContainer: Delete,
	wire.OpExists: Exists, wire.OpGetData: GetData, wire.OpSetData: SetData,
	wire.OpGetACL: GetACL, wire.OpSetACL: SetACL,
	wire.OpGetChildren: GetChildren, wire.OpGetChildren2: GetChildren,
	wire.OpSync: Sync, wire.OpCheck: Check, wire.OpMulti: Multi, wire.OpMultiRead: MultiRead,
	wire.OpSetWatches: SetWatches, wire.OpSetWatches2: SetWatches, wire.OpAuth: SetAuth, wire.OpPing: Ping,
	wire.OpClose: CloseSession, wire.OpConnect: Connect,
	wire.OpAddWatch: AddWatch, wire.OpCheckWatches: CheckWatches, wire.OpRemoveWatches: RemoveWatches,
	wire.OpGetEphemerals: GetEphemerals, wire.OpGetAllChildrenNumber: GetAllChildrenNumber,
	wire.OpWhoAmI: WhoAmI, wire.OpReconfig: Reconfig, wire.OpSASL: SetAuth,
}

func fromWire(op wire.Op) Op {
	if o, ok := opOf[op]; ok {
		return o
	}
	return Other
}

// pathless reports whether requests of this kind have no path that a pattern could match.
func (o Op) pathless() bool {
	switch o {
	case Connect, Ping, CloseSession, SetAuth, WhoAmI, Reconfig, Other:
		return true
	}
	return false
}

// event reports whether o is a watch event, or all of them.
func (o Op) event() bool { return o >= AnyEvent }

var eventOf = map[wire.EventType]Op{
	wire.EventCreated: EventCreated, wire.EventDeleted: EventDeleted,
	wire.EventDataChanged: EventDataChanged, wire.EventChildrenChanged: EventChildrenChanged,
}

// asked reports whether requests of this kind are what a client's caller asked for.
func (o Op) asked() bool {
	switch o {
	case Connect, Ping, CloseSession, SetWatches, SetAuth:
		return false
	}
	return !o.event()
}
