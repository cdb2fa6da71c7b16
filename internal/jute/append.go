package jute

import "encoding/binary"

// AppendInt32 appends a number of four bytes.
func AppendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

// AppendInt64 appends a number of eight bytes.
func AppendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

// AppendBool appends a flag.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBuffer appends a buffer; nil is a null one.
func AppendBuffer(dst, v []byte) []byte {
	if v == nil {
		return AppendInt32(dst, -1)
	}
	return AppendText(dst, v)
}

// AppendText appends a string, or a buffer that is not null even if it is nil.
func AppendText[T string | []byte](dst []byte, v T) []byte {
	return append(AppendInt32(dst, int32(len(v))), v...)
}

// AppendFrame appends the frame of a body.
func AppendFrame(dst, body []byte) []byte { return AppendText(dst, body) }

// AppendStat appends the status of a node.
func AppendStat(dst []byte, s Stat) []byte {
	for _, v := range []int64{s.Czxid, s.Mzxid, s.Ctime, s.Mtime} {
		dst = AppendInt64(dst, v)
	}
	for _, v := range []int32{s.Version, s.Cversion, s.Aversion} {
		dst = AppendInt32(dst, v)
	}
	dst = AppendInt64(dst, s.EphemeralOwner)
	dst = AppendInt32(AppendInt32(dst, s.DataLength), s.NumChildren)
	return AppendInt64(dst, s.Pzxid)
}
