package zkserver

// wellFormed are requests of every kind on few paths, so that they meet.
var wellFormed = func() []struct {
	op   Op
	body func(*Encoder)
} {
	type form = struct {
		op   Op
		body func(*Encoder)
	}
	forms := []form{
		{OpPing, func(*Encoder) {}},
		{OpClose, func(*Encoder) {}},
		{OpWhoAmI, func(*Encoder) {}},
		{OpAuth, func(e *Encoder) { e.Int32(0); e.Text("digest"); e.Buffer([]byte("u:p")) }},
		{OpAuth, func(e *Encoder) { e.Int32(0); e.Text("none"); e.Buffer(nil) }},
	}
	lists := func(n int) func(*Encoder) {
		return func(e *Encoder) {
			e.Int64(3)
			for range n {
				e.Texts([]string{"/a", "/a/b", "/x"})
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
	body func(*Encoder)
}) {
	add := func(op Op, body func(*Encoder)) {
		forms = append(forms, struct {
			op   Op
			body func(*Encoder)
		}{op, body})
	}
	for flags := range int32(7) {
		add(OpCreate, createBody(path, []byte("x"), OpenACL(), flags))
	}
	mine := []ACL{{PermAll, ID{"auth", ""}}}
	add(OpCreate2, createBody(path+"/s-", nil, mine, FlagSequential|FlagEphemeral))
	add(OpCreateContainer, createBody(path, nil, OpenACL(), flagContainer))
	add(OpCreateTTL, func(e *Encoder) { createBody(path, nil, OpenACL(), flagTTL)(e); e.Int64(1000) })
	add(OpDelete, versionBody(path, -1))
	add(OpDeleteContainer, pathBody(path))
	add(OpSetData, setBody(path, make([]byte, 5000), -1))
	add(OpSetACL, func(e *Encoder) { e.Text(path); e.ACL(mine); e.Int32(-1) })
	add(OpCheck, versionBody(path, 0))
	for _, op := range []Op{OpExists, OpGetData, OpGetChildren, OpGetChildren2} {
		add(op, watchBody(path, true))
	}
	for _, op := range []Op{OpGetACL, OpSync, OpGetEphemerals, OpGetAllChildrenNumber} {
		add(op, pathBody(path))
	}
	for _, op := range []Op{OpAddWatch, OpCheckWatches, OpRemoveWatches} {
		for kind := range int32(4) {
			add(op, func(e *Encoder) { e.Text(path); e.Int32(kind) })
		}
	}
	add(OpMulti, multiBody(
		part(OpCreate, createBody(path+"/m", nil, OpenACL(), FlagEphemeral)), part(OpSetData, setBody(path, nil, -1)),
		part(OpDelete, versionBody(path+"/m", 0)), part(OpCheck, versionBody(path+"/b", -1)),
	))
	add(OpMultiRead, multiBody(part(OpGetData, watchBody(path, true)), part(OpGetChildren, watchBody(path, true))))
	return forms
}
