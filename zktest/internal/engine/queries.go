package engine

import (
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// readDescendants counts the nodes below a path, at any depth.
func (s *Server) readDescendants(r *request, e *wire.Encoder) wire.Code {
	if _, code := s.readable(r, r.call.Path, wire.PermRead); code != wire.CodeOK {
		return code
	}
	e.Int32(int32(s.tree.Descendants(r.call.Path)))
	return wire.CodeOK
}

// encodeIdentities tells a client who it is. Of a digest only the user is shown.
func encodeIdentities(ids []wire.ID, e *wire.Encoder) {
	e.Int32(int32(len(ids)))
	for _, id := range ids {
		name := id.Name
		if id.Scheme == "digest" {
			name, _, _ = strings.Cut(name, ":")
		}
		e.Text(id.Scheme)
		e.Text(name)
	}
}
