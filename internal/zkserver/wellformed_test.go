package zkserver

// wellFormed are requests of every kind on few paths, so that they meet.
var wellFormed = func() []struct {
	op   Op
	body func(*encoder)
} {
	type form = struct {
		op   Op
		body func(*encoder)
	}
	forms := []form{
		{OpPing, func(*encoder) {}},
		{OpClose, func(*encoder) {}},
		{OpWhoAmI, func(*encoder) {}},
		{OpAuth, func(e *encoder) { e.int32(0); e.string("digest"); e.buffer([]byte("u:p")) }},
		{OpAuth, func(e *encoder) { e.int32(0); e.string("none"); e.buffer(nil) }},
	}
	lists := func(n int) func(*encoder) {
		return func(e *encoder) {
			e.int64(3)
			for range n {
				e.strings([]string{"/a", "/a/b", "/x"})
			}
		}
	}
	forms = append(forms, form{OpSetWatches, lists(3)}, form{OpSetWatches2, lists(5)})
	for _, path := range []string{"/", "/a", "/a/b", "/a/b/c", "/zookeeper", "", "a"} {
		forms = append(forms, formsOn(path)...)
	}
	return forms
}()

func formsOn(path string) (forms []struct {
	op   Op
	body func(*encoder)
}) {
	add := func(op Op, body func(*encoder)) {
		forms = append(forms, struct {
			op   Op
			body func(*encoder)
		}{op, body})
	}
	for flags := range int32(7) {
		add(OpCreate, createBody(path, []byte("x"), OpenACL(), flags))
	}
	mine := []ACL{{PermAll, ID{"auth", ""}}}
	add(OpCreate2, createBody(path+"/s-", nil, mine, FlagSequential|FlagEphemeral))
	add(OpCreateContainer, createBody(path, nil, OpenACL(), flagContainer))
	add(OpCreateTTL, func(e *encoder) { createBody(path, nil, OpenACL(), flagTTL)(e); e.int64(1000) })
	add(OpDelete, versionBody(path, -1))
	add(OpDeleteContainer, pathBody(path))
	add(OpSetData, setBody(path, make([]byte, 5000), -1))
	add(OpSetACL, func(e *encoder) { e.string(path); e.acl(mine); e.int32(-1) })
	add(OpCheck, versionBody(path, 0))
	for _, op := range []Op{OpExists, OpGetData, OpGetChildren, OpGetChildren2} {
		add(op, watchBody(path, true))
	}
	for _, op := range []Op{OpGetACL, OpSync, OpGetEphemerals, OpGetAllChildrenNumber} {
		add(op, pathBody(path))
	}
	for _, op := range []Op{OpAddWatch, OpCheckWatches, OpRemoveWatches} {
		for kind := range int32(4) {
			add(op, func(e *encoder) { e.string(path); e.int32(kind) })
		}
	}
	add(OpMulti, multiBody(
		part(OpCreate, createBody(path+"/m", nil, OpenACL(), FlagEphemeral)), part(OpSetData, setBody(path, nil, -1)),
		part(OpDelete, versionBody(path+"/m", 0)), part(OpCheck, versionBody(path+"/b", -1)),
	))
	add(OpMultiRead, multiBody(part(OpGetData, watchBody(path, true)), part(OpGetChildren, watchBody(path, true))))
	return forms
}
