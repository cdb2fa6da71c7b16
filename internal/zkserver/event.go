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
		e := NewFrame(32 + len(path))
		e.Header(xidWatch, -1, CodeOK)
		e.Int32(int32(t))
		e.Int32(stateSyncConnected)
		e.Text(path)
		*f = eventFrame{kind: t, path: path, frame: e.Frame()}
	}
	return f.frame
}
