package zktest

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// Code is the result of a request; 0 is success.
type Code = wire.Code

// The results of requests. The first group is for clients: a rule cannot have them.
const (
	CodeConnectionLoss   Code = -4
	CodeOperationTimeout Code = -7

	CodeOK                   = wire.CodeOK
	CodeRuntimeInconsistency = wire.CodeRuntimeInconsistency // another part of the multi has failed
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

	// Only a rule answers with these. CodeAuthDemanded closes the connection.
	CodeAuthDemanded  = wire.CodeAuthDemanded
	CodeQuotaExceeded = wire.CodeQuotaExceeded
	CodeThrottled     = wire.CodeThrottled
)
