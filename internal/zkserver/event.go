package zkserver

// eventFrame keeps the last watch event as it goes over the wire: many watch the same node, and all are
// sent the same bytes.
type eventFrame struct {
	kind  EventType
	path  string
	frame []byte
}

func (f *eventFrame) of(t EventType, path string) []byte {
	if f.frame == nil || f.kind != t || f.path != path {
		e := newFrame(32 + len(path))
		e.int32(xidWatch)
		e.int64(-1)
		e.int32(0)
		e.int32(int32(t))
		e.int32(stateSyncConnected)
		e.string(path)
		*f = eventFrame{kind: t, path: path, frame: e.frame()}
	}
	return f.frame
}
