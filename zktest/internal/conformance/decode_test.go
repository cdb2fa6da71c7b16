package conformance

import "fmt"

// kind says how a field of a frame is made comparable between two servers.
type kind int

const (
	plain     kind = iota // as it is
	zxid                  // of a transaction
	seenZxid              // of the last transaction when a read was answered
	sessionID             //
	secret                // a session's password
	instant               // the time of the transaction in field.of
)

// field is one decoded value.
type field struct {
	name string
	kind kind
	text string // plain
	num  int64
	of   int64 // for an instant: the zxid of the transaction that it is the time of
}

// fields decodes one record.
type fields struct {
	r   *reader
	all []field
}

func (f *fields) plain(name string, v any) {
	f.all = append(f.all, field{name: name, text: fmt.Sprint(v)})
}

func (f *fields) number(name string, k kind, v int64) {
	f.all = append(f.all, field{name: name, kind: k, num: v})
}

func (f *fields) stat(prefix string) {
	r := f.r
	czxid, mzxid, ctime, mtime := r.i64(), r.i64(), r.i64(), r.i64()
	f.number(prefix+"czxid", zxid, czxid)
	f.number(prefix+"mzxid", zxid, mzxid)
	f.all = append(f.all,
		field{name: prefix + "ctime", kind: instant, num: ctime, of: czxid},
		field{name: prefix + "mtime", kind: instant, num: mtime, of: mzxid})
	f.plain("version", r.i32())
	f.plain("cversion", r.i32())
	f.plain("aversion", r.i32())
	f.number("owner", sessionID, r.i64())
	f.plain("length", r.i32())
	f.plain("children", r.i32())
	f.number("pzxid", zxid, r.i64())
}

func (f *fields) string(name string) { f.plain(name, short(f.r.str())) }

func (f *fields) data() {
	b, ok := f.r.buf()
	if !ok {
		f.plain("data", "null")
		return
	}
	f.plain("data", short(string(b)))
}

func (f *fields) strings(name string) {
	n := f.r.count()
	if n < 0 {
		f.plain(name, "null")
		return
	}
	all := make([]string, 0, n)
	for range n {
		all = append(all, f.r.str())
	}
	f.plain(name, fmt.Sprintf("%q", all))
}

func (f *fields) acl() {
	n := f.r.count()
	if n < 0 {
		f.plain("acl", "null")
		return
	}
	all := make([]grant, 0, n)
	for range n {
		all = append(all, grant{f.r.i32(), f.r.str(), f.r.str()})
	}
	f.plain("acl", fmt.Sprintf("%v", all))
}

func (f *fields) identities() {
	n := f.r.count()
	if n < 0 {
		f.plain("identities", "null")
		return
	}
	all := make([][2]string, 0, n)
	for range n {
		all = append(all, [2]string{f.r.str(), f.r.str()})
	}
	f.plain("identities", fmt.Sprintf("%q", all))
}

// parts decodes the answer to a multi or multiRead.
func (f *fields) parts() {
	for !f.r.short {
		code, done, err := f.r.i32(), f.r.boolean(), f.r.i32()
		if done {
			f.plain("end", fmt.Sprintf("%d/%d", code, err))
			return
		}
		f.plain("part", fmt.Sprintf("%d err=%d", code, err))
		if code == -1 {
			f.plain("error", f.r.i32())
			continue
		}
		f.result(code)
	}
}

// result decodes the body of a successful answer.
func (f *fields) result(code int32) {
	switch code {
	case 1:
		f.string("path")
	case 15, 19, 21:
		f.string("path")
		f.stat("")
	case 3, 5, 7:
		f.stat("")
	case 4:
		f.data()
		f.stat("")
	case 6:
		f.acl()
		f.stat("")
	case 8, 103:
		f.strings("names")
	case 12:
		f.strings("names")
		f.stat("")
	case 9:
		f.string("path")
	case 14, 22:
		f.parts()
	case 106:
		f.plain("error", f.r.i32())
	case 104:
		f.plain("count", f.r.i32())
	case 107:
		f.identities()
	}
}

// rest shows what nobody has decoded, so that no byte of a frame is left out of the comparison.
func (f *fields) rest() {
	if f.r.short {
		f.plain("short", true)
	}
	if len(f.r.b) > 0 {
		f.plain("rest", fmt.Sprintf("%x", f.r.b))
	}
}

func decodeConnected(frame []byte) []field {
	f := &fields{r: &reader{b: frame}}
	f.plain("version", f.r.i32())
	f.plain("timeout", f.r.i32())
	f.number("session", sessionID, f.r.i64())
	b, _ := f.r.buf()
	f.all = append(f.all, field{name: "password", kind: secret, text: string(b)})
	if len(f.r.b) > 0 {
		f.plain("readonly", f.r.boolean())
	}
	f.rest()
	return f.all
}
