package zkserver

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// ephemeralsUnder returns the ephemerals of a session whose path begins with prefix, which need not end
// at a slash; all of them if there is nothing, or only the root, in prefix.
func (s *Server) ephemeralsUnder(session int64, prefix string) []string {
	set := s.tree.ephemerals[session]
	if set.len() == 0 {
		return nil
	}
	all := set.clone().list()
	if t := strings.TrimFunc(prefix, blank); t == "" || t == "/" {
		return all
	}
	var out []string
	for _, path := range all {
		if strings.HasPrefix(path, prefix) {
			out = append(out, path)
		}
	}
	return out
}

// blank tells whether the JVM trims a character.
func blank(r rune) bool { return r <= ' ' }

// readDescendants counts the nodes below a path, at any depth.
func (s *Server) readDescendants(r *request, e *wire.Encoder) wire.Code {
	path := r.call.Path
	if _, code := s.readable(r, path, wire.PermRead); code != wire.CodeOK {
		return code
	}
	if path == "/" {
		e.Int32(int32(len(s.tree.nodes) - 2)) // the root counts twice, see nodeCount
		return wire.CodeOK
	}
	n := 0
	for p := range s.tree.nodes {
		if strings.HasPrefix(p, path) && strings.HasPrefix(p[len(path):], "/") {
			n++
		}
	}
	e.Int32(int32(n))
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
