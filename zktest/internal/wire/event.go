package wire

// EventFrame keeps the last watch event as it goes over the wire: many watch the same node, and all are
// sent the same bytes.
type EventFrame struct {
	kind  EventType
	path  string
	zxid  int64
	frame []byte
}

// Of returns the frame of an event, which nobody may change.
func (f *EventFrame) Of(t EventType, path string, zxid int64) []byte {
	if f.frame == nil || f.kind != t || f.path != path || f.zxid != zxid {
		e := NewFrame(32 + len(path))
		e.Header(XidWatch, zxid, CodeOK)
		e.Int32(int32(t))
		e.Int32(StateSyncConnected)
		e.Text(path)
		*f = EventFrame{kind: t, path: path, zxid: zxid, frame: e.Frame()}
	}
	return f.frame
}
