package engine

import "github.com/go-menagerie/menagerie/zktest/internal/wire"

// wellFormed are requests of every kind on few paths, so that they meet.
var wellFormed = func() []struct {
	op   wire.Op
	body func(*wire.Encoder)
} {
	type form = struct {
		op   wire.Op
		body func(*wire.Encoder)
	}
	forms := []form{
		{wire.OpPing, func(*wire.Encoder) {}},
		{wire.OpClose, func(*wire.Encoder) {}},
		{wire.OpWhoAmI, func(*wire.Encoder) {}},
		{wire.OpAuth, func(e *wire.Encoder) { e.Int32(0); e.Text("digest"); e.Buffer([]byte("u:p")) }},
		{wire.OpAuth, func(e *wire.Encoder) { e.Int32(0); e.Text("none"); e.Buffer(nil) }},
	}
	lists := func(n int) func(*wire.Encoder) {
		return func(e *wire.Encoder) {
			e.Int64(3)
			for range n {
				e.Texts([]string{"/a", "/a/b", "/x"})
			}
		}
	}
	forms = append(forms, form{wire.OpSetWatches, lists(3)}, form{wire.OpSetWatches2, lists(5)})
	for _, path := range []string{"/", "/a", "/a/b", "/a/b/c", "/zookeeper", "", "a"} {
		forms = append(forms, formsOn(path)...)
	}
	return forms
}()

func formsOn(path string) (forms []struct {
	op   wire.Op
	body func(*wire.Encoder)
}) {
	add := func(op wire.Op, body func(*wire.Encoder)) {
		forms = append(forms, struct {
			op   wire.Op
			body func(*wire.Encoder)
		}{op, body})
	}
	for flags := range int32(7) {
		add(wire.OpCreate, createBody(path, []byte("x"), wire.OpenACL(), flags))
	}
	mine := []wire.ACL{{Perms: wire.PermAll, ID: wire.ID{Scheme: "auth", Name: ""}}}
	add(wire.OpCreate2, createBody(path+"/s-", nil, mine, wire.FlagSequential|wire.FlagEphemeral))
	add(wire.OpCreateContainer, createBody(path, nil, wire.OpenACL(), wire.FlagContainer))
	add(wire.OpCreateTTL, func(e *wire.Encoder) { createBody(path, nil, wire.OpenACL(), wire.FlagTTL)(e); e.Int64(1000) })
	add(wire.OpDelete, versionBody(path, -1))
	add(wire.OpDeleteContainer, pathBody(path))
	add(wire.OpSetData, setBody(path, make([]byte, 5000), -1))
	add(wire.OpSetACL, func(e *wire.Encoder) { e.Text(path); e.ACL(mine); e.Int32(-1) })
	add(wire.OpCheck, versionBody(path, 0))
	for _, op := range []wire.Op{wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2} {
		add(op, watchBody(path, true))
	}
	for _, op := range []wire.Op{wire.OpGetACL, wire.OpSync, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber} {
		add(op, pathBody(path))
	}
	for _, op := range []wire.Op{wire.OpAddWatch, wire.OpCheckWatches, wire.OpRemoveWatches} {
		for kind := range int32(4) {
			add(op, func(e *wire.Encoder) { e.Text(path); e.Int32(kind) })
		}
	}
	add(wire.OpMulti, multiBody(
		part(wire.OpCreate, createBody(path+"/m", nil, wire.OpenACL(), wire.FlagEphemeral)), part(wire.OpSetData, setBody(path, nil, -1)),
		part(wire.OpDelete, versionBody(path+"/m", 0)), part(wire.OpCheck, versionBody(path+"/b", -1)),
	))
	add(wire.OpMultiRead, multiBody(part(wire.OpGetData, watchBody(path, true)), part(wire.OpGetChildren, watchBody(path, true))))
	return forms
}
