package zktest

import (
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Create makes a node, open to everybody, and returns its path. flags are those of go-zookeeper, such as
// [zk.FlagEphemeral], for which owner is the session.
func (s *Server) Create(path string, data []byte, flags int32, owner int64) string {
	if s.tb != nil {
		s.tb.Helper()
	}
	c := wire.Call{Op: wire.OpCreate, Path: path, Data: data, ACL: wire.OpenACL(), Flags: flags}
	if flags == zk.FlagContainer {
		c.Op = wire.OpCreateContainer
	}
	if flags == zk.FlagEphemeral || flags == zk.FlagEphemeral|zk.FlagSequence {
		if ids := s.sessionIDs(); !slices.Contains(ids, hex(owner)) {
			s.errorf("zktest: create %s: no session %s to own the ephemeral; those that live: %s", shown(path), hex(owner), listed(ids))
			return ""
		}
	}
	created, code := s.zk.Do(c, owner)
	if code != wire.CodeOK {
		s.cannot("create", path, code)
		return ""
	}
	return created
}

// Set changes a node's data.
func (s *Server) Set(path string, data []byte) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.do("set", wire.Call{Op: wire.OpSetData, Path: path, Data: data, Version: -1})
}

// Delete removes a node without children; see [Server.DeleteAll].
func (s *Server) Delete(path string) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.do("delete", wire.Call{Op: wire.OpDelete, Path: path, Version: -1})
}

// do runs an operation without a client and fails the test if it fails.
func (s *Server) do(verb string, c wire.Call) bool {
	if s.tb != nil {
		s.tb.Helper()
	}
	_, code := s.zk.Do(c, 0)
	if code != wire.CodeOK {
		s.cannot(verb, c.Path, code)
	}
	return code == wire.CodeOK
}

func (s *Server) cannot(verb, path string, code wire.Code) {
	if s.tb != nil {
		s.tb.Helper()
	}
	s.errorf("zktest: %s %s: %v\n%s", verb, shown(path), errorOf(code), s.situation())
}

var codeText = map[wire.Code]string{
	wire.CodeBadArguments: "bad arguments: the server's own node, unknown flags, or a path that does not start with a slash, ends with one, or has an empty or relative part",
	wire.CodeNoNode:       "no such node, or no parent for it", wire.CodeNodeExists: "node exists",
	wire.CodeNotEmpty: "node has children", wire.CodeNoChildrenEphemeral: "ephemerals have no children",
	wire.CodeInvalidACL:     "an ACL that is empty or invalid; the scheme \"auth\" needs a client",
	wire.CodeUnimplemented:  "nodes with a time to live need WithExtendedTypes and a client",
	wire.CodeSessionExpired: "server is stopped or closed, or there is no such session",
}

func errorOf(code wire.Code) error {
	if text, ok := codeText[code]; ok {
		return fmt.Errorf("%s (%d)", text, code)
	}
	return fmt.Errorf("code %d", code)
}
