package zktest

import (
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/zkserver"
)

// Create makes a node without a client, with open ACL and without access checks. flags are those of
// go-zookeeper ([zk.FlagEphemeral], [zk.FlagSequence], [zk.FlagContainer] for a container); owner
// is the session of an ephemeral node. It returns the node's path, and fails the test if it cannot
// be made.
func (s *Server) Create(path string, data []byte, flags int32, owner int64) string {
	if s.tb != nil {
		s.tb.Helper()
	}
	c := zkserver.Call{Op: zkserver.OpCreate, Path: path, Data: data, ACL: zkserver.OpenACL(), Flags: flags}
	if flags == zk.FlagContainer {
		c.Op = zkserver.OpCreateContainer
	}
	created, code := s.zk.Do(c, owner)
	if code != zkserver.CodeOK {
		s.errorf("zktest: create %s: %v", path, errorOf(code))
		return ""
	}
	return created
}

// Set changes a node's data without a client, whatever its version. It fails the test if there is
// no such node.
func (s *Server) Set(path string, data []byte) {
	if s.tb != nil {
		s.tb.Helper()
	}
	c := zkserver.Call{Op: zkserver.OpSetData, Path: path, Data: data, Version: -1}
	if _, code := s.zk.Do(c, 0); code != zkserver.CodeOK {
		s.errorf("zktest: set %s: %v", path, errorOf(code))
	}
}

// Delete removes a node without a client, whatever its version. It fails the test if there is no
// such node or it has children.
func (s *Server) Delete(path string) {
	if s.tb != nil {
		s.tb.Helper()
	}
	c := zkserver.Call{Op: zkserver.OpDelete, Path: path, Version: -1}
	if _, code := s.zk.Do(c, 0); code != zkserver.CodeOK {
		s.errorf("zktest: delete %s: %v", path, errorOf(code))
	}
}

var codeText = map[zkserver.Code]string{
	zkserver.CodeBadArguments: "bad arguments", zkserver.CodeNoNode: "no such node", zkserver.CodeNodeExists: "node exists",
	zkserver.CodeNotEmpty: "node has children", zkserver.CodeNoChildrenEphemeral: "ephemerals have no children",
	zkserver.CodeSessionExpired: "server is down",
}

func errorOf(code zkserver.Code) error {
	if text, ok := codeText[code]; ok {
		return fmt.Errorf("%s (%d)", text, code)
	}
	return fmt.Errorf("code %d", code)
}
