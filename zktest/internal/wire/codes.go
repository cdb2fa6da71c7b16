package wire

import (
	"maps"
	"slices"
	"strconv"
)

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
	OpError                Op = -1
	OpCreateSession        Op = -1 << 31 // OpConnect inside a session, see conn.decode
)

var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpExists: "exists", OpGetData: "getData",
	OpSetData: "setData", OpGetACL: "getACL", OpSetACL: "setACL", OpGetChildren: "getChildren",
	OpSync: "sync", OpPing: "ping", OpGetChildren2: "getChildren2", OpCheck: "check",
	OpMulti: "multi", OpCreate2: "create2", OpCreateContainer: "createContainer",
	OpDeleteContainer: "deleteContainer", OpCreateTTL: "createTTL", OpMultiRead: "multiRead",
	OpAuth: "setAuth", OpSetWatches: "setWatches", OpConnect: "connect", OpClose: "closeSession",
	OpCreateSession: "createSession", OpReconfig: "reconfig", OpSASL: "sasl", OpWhoAmI: "whoAmI",
	OpGetEphemerals: "getEphemerals", OpGetAllChildrenNumber: "getAllChildrenNumber",
	OpCheckWatches: "checkWatches", OpRemoveWatches: "removeWatches",
	OpSetWatches2: "setWatches2", OpAddWatch: "addWatch",
}

// Ops returns the operations that have a name, in order.
func Ops() []Op { return slices.Sorted(maps.Keys(opNames)) }

// String returns the name that the ZooKeeper documentation uses.
func (o Op) String() string {
	if n, ok := opNames[o]; ok {
		return n
	}
	return "op" + strconv.Itoa(int(o))
}

// Known reports whether the server serves the operation. Others are answered "unimplemented".
func (o Op) Known() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL,
		OpExists, OpGetData, OpGetACL, OpGetChildren, OpGetChildren2, OpSync, OpCheck, OpMulti, OpMultiRead,
		OpAuth, OpSASL, OpPing, OpClose, OpCreateSession, OpReconfig,
		OpGetEphemerals, OpGetAllChildrenNumber, OpWhoAmI,
		OpSetWatches, OpSetWatches2, OpAddWatch, OpCheckWatches, OpRemoveWatches:
		return true
	}
	return false
}

// Writes reports whether the operation is a transaction, even if that only records a failure: it needs a zxid.
func (o Op) Writes() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer, OpSetData, OpSetACL,
		OpMulti, OpCheck, OpConnect, OpClose, OpReconfig, OpCreateSession:
		return true
	}
	return false
}

var shortNames = map[Op]string{
	OpConnect: "SESS", OpCreateSession: "SESS", OpReconfig: "RECO", OpClose: "CLOS", OpPing: "PING", OpSync: "SYNC", OpCheck: "CHEC",
	OpCreate: "CREA", OpCreate2: "CREA", OpCreateContainer: "CREA", OpCreateTTL: "CREA",
	OpDelete: "DELE", OpDeleteContainer: "DELE", OpSetData: "SETD", OpSetACL: "SETA", OpMulti: "MULT", OpMultiRead: "MLTR",
	OpExists: "EXIS", OpGetData: "GETD", OpGetACL: "GETA", OpGetChildren: "GETC", OpGetChildren2: "GETC",
	OpGetAllChildrenNumber: "GETACN", OpGetEphemerals: "GETE", OpWhoAmI: "HOMI",
	OpSetWatches: "SETW", OpSetWatches2: "STW2", OpAddWatch: "ADDW", OpCheckWatches: "CHKW", OpRemoveWatches: "REMW",
}

// Short returns the name of the operation in what the four-letter word cons reports.
func (o Op) Short() string { return shortNames[o] }

// Code is a ZooKeeper result code, as on the wire; 0 is success.
type Code int32

// The result codes that this server answers with, or that a rule makes it answer with.
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
	CodeAuthDemanded         Code = -124
	CodeQuotaExceeded        Code = -125
	CodeThrottled            Code = -127
)

// codeNames are the names of result codes, also of some that this server does not answer with, in ZooKeeper's documentation.
var codeNames = map[Code]string{
	0: "ok", -2: "runtimeInconsistency", -4: "connectionLoss", -5: "marshallingError", -6: "unimplemented", -7: "operationTimeout", -8: "badArguments",
	-101: "noNode", -102: "noAuth", -103: "badVersion", -108: "noChildrenForEphemerals", -110: "nodeExists", -111: "notEmpty",
	-112: "sessionExpired", -113: "invalidCallback", -114: "invalidACL", -115: "authFailed", -118: "sessionMoved", -119: "notReadOnly",
	-121: "noWatcher", -123: "reconfigDisabled", -124: "sessionClosedRequireSaslAuth", -12: "unknownSession", -122: "requestTimeout", -125: "quotaExceeded", -127: "throttled",
}

// String returns the name that the ZooKeeper documentation uses; "ok" for success.
func (c Code) String() string {
	if n, ok := codeNames[c]; ok {
		return n
	}
	return "code" + strconv.Itoa(int(c))
}

// answers are the codes that servers answer with, of any release. The others are found by clients, or mark a range, or belong to nothing.
var answers = []Code{
	CodeOK, CodeRuntimeInconsistency, CodeMarshalling, CodeUnimplemented, CodeBadArguments, CodeUnknownSession,
	-13, -14, // of a reconfiguration: there is no quorum, or another one is under way
	CodeNoNode, CodeNoAuth, CodeBadVersion, CodeNoChildrenEphemeral, CodeNodeExists, CodeNotEmpty, CodeSessionExpired, CodeInvalidACL,
	CodeAuthFailed, CodeSessionMoved,
	-119, -120, // of a server that is read-only, or has local sessions
	CodeNoWatcher, CodeReconfigDisabled, CodeAuthDemanded, CodeQuotaExceeded, CodeThrottled,
}

// Answers reports whether a server ever answers with the code.
func (c Code) Answers() bool { return slices.Contains(answers, c) }

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
	XidWatch           int32 = -1
	XidPing            int32 = -2
	StateSyncConnected int32 = 3
)

// Flags of a create request.
const (
	FlagEphemeral     int32 = 1
	FlagSequential    int32 = 2
	FlagContainer     int32 = 4
	FlagTTL           int32 = 5
	FlagTTLSequential int32 = 6
)

// ContainerOwner is the internal ephemeral owner of a container node; clients see 0.
const ContainerOwner = -1 << 63
