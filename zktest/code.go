package zktest

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Code is the result of a request, as it goes over the wire; 0 is success. Its String is the name that ZooKeeper's
// documentation uses, such as "noNode".
type Code = wire.Code

// The results of requests. Clients find those of the first group by themselves. No server answers with them, and a rule with one of them
// fails the test.
const (
	CodeConnectionLoss   Code = -4
	CodeOperationTimeout Code = -7

	CodeOK                   = wire.CodeOK
	CodeRuntimeInconsistency = wire.CodeRuntimeInconsistency // of a part of a multi: another part has failed
	CodeMarshalling          = wire.CodeMarshalling
	CodeUnimplemented        = wire.CodeUnimplemented
	CodeBadArguments         = wire.CodeBadArguments
	CodeUnknownSession       = wire.CodeUnknownSession
	CodeNoNode               = wire.CodeNoNode
	CodeNoAuth               = wire.CodeNoAuth
	CodeBadVersion           = wire.CodeBadVersion
	CodeNoChildrenEphemeral  = wire.CodeNoChildrenEphemeral
	CodeNodeExists           = wire.CodeNodeExists
	CodeNotEmpty             = wire.CodeNotEmpty
	CodeSessionExpired       = wire.CodeSessionExpired
	CodeInvalidACL           = wire.CodeInvalidACL
	CodeAuthFailed           = wire.CodeAuthFailed
	CodeSessionMoved         = wire.CodeSessionMoved
	CodeReconfigDisabled     = wire.CodeReconfigDisabled
	CodeNoWatcher            = wire.CodeNoWatcher

	// A server answers with these only if a rule says so. After CodeAuthDemanded it closes the connection, as a server does that demands authentication.
	CodeAuthDemanded  = wire.CodeAuthDemanded
	CodeQuotaExceeded = wire.CodeQuotaExceeded
	CodeThrottled     = wire.CodeThrottled
)
