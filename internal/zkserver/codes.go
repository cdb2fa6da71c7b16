package zkserver

import "strconv"

// Op is the operation code of a request, as on the wire.
type Op int32

// The operations that a client can send, and the two that only appear in logs
// and hooks: OpConnect and OpClose name the session transactions.
const (
	OpNotification         Op = 0
	OpCreate               Op = 1
	OpDelete               Op = 2
	OpExists               Op = 3
	OpGetData              Op = 4
	OpSetData              Op = 5
	OpGetACL               Op = 6
	OpSetACL               Op = 7
	OpGetChildren          Op = 8
	OpSync                 Op = 9
	OpPing                 Op = 11
	OpGetChildren2         Op = 12
	OpCheck                Op = 13
	OpMulti                Op = 14
	OpCreate2              Op = 15
	OpReconfig             Op = 16
	OpCheckWatches         Op = 17
	OpRemoveWatches        Op = 18
	OpCreateContainer      Op = 19
	OpDeleteContainer      Op = 20
	OpCreateTTL            Op = 21
	OpMultiRead            Op = 22
	OpAuth                 Op = 100
	OpSetWatches           Op = 101
	OpSASL                 Op = 102
	OpGetEphemerals        Op = 103
	OpGetAllChildrenNumber Op = 104
	OpSetWatches2          Op = 105
	OpAddWatch             Op = 106
	OpWhoAmI               Op = 107
	OpConnect              Op = -10
	OpClose                Op = -11
	opError                Op = -1
	opCreateSession        Op = -1 << 31 // OpConnect inside a session, see conn.decode
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren",
	OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check",
	OpMulti: "multi", OpCreate2: "create2", OpCreateContainer: "createContainer",
	OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL", OpMultiRead: "multiRead",
	OpAuth: "setAuth", OpSetWatches: "setWatches", OpConnect: "connect", OpClose: "closeSession",
	opCreateSession: "createSession", OpReconfig: "reconfig", OpSASL: "sasl", OpWhoAmI: "whoAmI",
	OpGetEphemerals: "getEphemerals", OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpCheckWatches: "checkWatches", OpRemoveWatches: "removeWatches",
	OpSetWatches2: "setWatches2", OpAddWatch: "addWatch",
}

// String returns the name that the ZooKeeper documentation uses.
func (o Op) String() string {
	if n, ok := opNames[o]; ok {
		return n
	}
	return "op" + strconv.Itoa(int(o))
}

// Code is a ZooKeeper result code, as on the wire; 0 is success.
type Code int32

// The result codes that this server answers with.
const (
	CodeOK                   Code = 0
	CodeRuntimeInconsistency Code = -2
	CodeMarshalling          Code = -5
	CodeUnimplemented        Code = -6
	CodeBadArguments         Code = -8
	CodeUnknownSession       Code = -12
	CodeNoNode               Code = -101
	CodeNoAuth               Code = -102
	CodeBadVersion           Code = -103
	CodeNoChildrenEphemeral  Code = -108
	CodeNodeExists           Code = -110
	CodeNotEmpty             Code = -111
	CodeSessionExpired       Code = -112
	CodeInvalidACL           Code = -114
	CodeAuthFailed           Code = -115
	CodeSessionMoved         Code = -118
	CodeReconfigDisabled     Code = -123
	CodeNoWatcher            Code = -121
)

// EventType is the kind of a watch event.
type EventType int32

// The watch events of the protocol.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// Reserved xids, and the session state that every watch event carries.
const (
	xidWatch           int32 = -1
	xidPing            int32 = -2
	stateSyncConnected int32 = 3
)

// Flags of a create request.
const (
	FlagEphemeral  int32 = 1
	FlagSequential int32 = 2
	flagContainer  int32 = 4
	flagTTL        int32 = 5
	flagTTLSeq     int32 = 6
)

// ContainerOwner is the internal ephemeral owner of a container node; clients see 0.
const ContainerOwner = -1 << 63
