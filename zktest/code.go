package zktest

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Code is the result of a request on the wire; 0 is success. Its String is ZooKeeper's name, such as
// "noNode".
type Code = wire.Code

// The results of requests. Clients find those of the first group by themselves: a rule with one of them fails
// the test.
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

	// Only a rule answers with these. After CodeAuthDemanded the server closes the connection.
	CodeAuthDemanded  = wire.CodeAuthDemanded
	CodeQuotaExceeded = wire.CodeQuotaExceeded
	CodeThrottled     = wire.CodeThrottled
)
