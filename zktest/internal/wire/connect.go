package wire

// ConnectRequest is the first request on a connection.
type ConnectRequest struct {
	LastZxid int64
	Timeout  int32
	Session  int64
	Password []byte
	ReadOnly bool // the client knows the read-only flag and wants to see it in the reply
}

// DecodeConnect decodes the body of a connect request. It reports false for one that is malformed.
func DecodeConnect(body []byte) (ConnectRequest, bool) {
	d := NewDecoder(body)
	d.Int32() // protocol version: the real server does not look at it either
	q := ConnectRequest{LastZxid: d.Int64(), Timeout: d.Int32(), Session: d.Int64(), Password: d.Buffer()}
	if d.Err() != nil {
		return q, false
	}
	if len(d.Rest()) > 0 {
		d.Bool()
		q.ReadOnly = true
	}
	return q, true
}
