package conformance

import "fmt"

// op is one request without its xid: a number on the wire, what it looks like in a transcript, and how
// to encode its body.
type op struct {
	code int32
	name string
	args string
	body func(r *record)
}

func (o op) String() string { return o.name + o.args }

// as sends the same body under another number.
func (o op) as(code int32) op {
	o.code, o.name = code, fmt.Sprintf("op%d:%s", code, o.name)
	return o
}

// grant is one entry of an access control list.
type grant struct {
	perms      int32
	scheme, id string
}

const (
	permRead, permWrite, permCreate, permDelete, permAdmin, permAll = 1, 2, 4, 8, 16, 31
)

// open lets everybody do everything.
var open = []grant{{permAll, "world", "anyone"}}

// anyone grants something to everybody.
func anyone(perms int32) grant { return grant{perms, "world", "anyone"} }

// Flags of a create.
const (
	persistent    = 0
	ephemeral     = 1
	sequential    = 2
	ephemeralSeq  = 3
	containerFlag = 4
	ttlFlag       = 5
	ttlSeqFlag    = 6
)

func request(code int32, name, args string, body func(r *record)) op {
	return op{code: code, name: name, args: args, body: body}
}

// Requests. A path that begins with "~" is below the scenario's own node.

func create(path, data string, flags int32) op { return createACL(path, data, flags, open) }

func createACL(path, data string, flags int32, acl []grant) op {
	return request(1, "create", fmt.Sprintf(" %q %s flags=%d acl=%v", path, short(data), flags, acl), func(r *record) {
		r.path(path).buf(bytesOf(data)).acl(acl).i32(flags)
	})
}

func create2(path, data string, flags int32) op {
	o := create(path, data, flags)
	o.code, o.name = 15, "create2"
	return o
}

func container(path, data string) op {
	o := create(path, data, containerFlag)
	o.code, o.name = 19, "createContainer"
	return o
}

func createTTL(path, data string, flags int32, ttl int64) op {
	return request(21, "createTTL", fmt.Sprintf(" %q %s flags=%d ttl=%d", path, short(data), flags, ttl), func(r *record) {
		r.path(path).buf(bytesOf(data)).acl(open).i32(flags).i64(ttl)
	})
}

func remove(path string, version int32) op { return versioned(2, "delete", path, version) }
func check(path string, version int32) op  { return versioned(13, "check", path, version) }

func versioned(code int32, name, path string, version int32) op {
	return request(code, name, fmt.Sprintf(" %q v%d", path, version), func(r *record) { r.path(path).i32(version) })
}

func exists(path string, watch bool) op { return watching(3, "exists", path, watch) }
func get(path string, watch bool) op    { return watching(4, "getData", path, watch) }
func list(path string, watch bool) op   { return watching(8, "getChildren", path, watch) }
func list2(path string, watch bool) op  { return watching(12, "getChildren2", path, watch) }

func watching(code int32, name, path string, watch bool) op {
	args := fmt.Sprintf(" %q", path)
	if watch {
		args += " watch"
	}
	return request(code, name, args, func(r *record) { r.path(path).boolean(watch) })
}

func set(path, data string, version int32) op {
	return request(5, "setData", fmt.Sprintf(" %q %s v%d", path, short(data), version), func(r *record) {
		r.path(path).buf(bytesOf(data)).i32(version)
	})
}

func getACL(path string) op          { return pathOnly(6, "getACL", path) }
func syncOf(path string) op          { return pathOnly(9, "sync", path) }
func ephemerals(prefix string) op    { return pathOnly(103, "getEphemerals", prefix) }
func allChildren(path string) op     { return pathOnly(104, "getAllChildrenNumber", path) }
func deleteContainer(path string) op { return pathOnly(20, "deleteContainer", path) }

func pathOnly(code int32, name, path string) op {
	return request(code, name, fmt.Sprintf(" %q", path), func(r *record) { r.path(path) })
}

func setACL(path string, version int32, acl ...grant) op {
	return request(7, "setACL", fmt.Sprintf(" %q v%d %v", path, version, acl), func(r *record) {
		r.path(path).acl(acl).i32(version)
	})
}

func bare(code int32, name string) op { return request(code, name, "", func(*record) {}) }

func whoAmI() op       { return bare(107, "whoAmI") }
func closeSession() op { return bare(-11, "closeSession") }

func auth(scheme, cred string) op {
	return request(100, "setAuth", fmt.Sprintf(" %s %q", scheme, cred), func(r *record) {
		r.i32(0).str(scheme).buf(bytesOf(cred))
	})
}

// setWatches is what a client sends after a reconnect. The zxid is not shown, since it is not the
// same number on both servers.
func setWatches(since int64, data, exist, child []string) op {
	return request(101, "setWatches", fmt.Sprintf(" data=%v exist=%v child=%v", data, exist, child), func(r *record) {
		r.i64(since).paths(data).paths(exist).paths(child)
	})
}

// setWatches2 is setWatches with the lists of persistent and of recursive watches.
func setWatches2(since int64, data, exist, child, persistent, recursive []string) op {
	o := setWatches(since, data, exist, child)
	o.code, o.name = 105, "setWatches2"
	o.args += fmt.Sprintf(" persistent=%v recursive=%v", persistent, recursive)
	first := o.body
	o.body = func(r *record) {
		first(r)
		r.paths(persistent).paths(recursive)
	}
	return o
}

// Modes of addWatch, and the types that checkWatches and removeWatches know.
const (
	modePersistent, modeRecursive   = 0, 1
	typeChildren, typeData, typeAny = 1, 2, 3
	typePersistent, typeRecursive   = 4, 5
)

func addWatch(path string, mode int32) op      { return numbered(106, "addWatch", path, mode) }
func checkWatches(path string, kind int32) op  { return numbered(17, "checkWatches", path, kind) }
func removeWatches(path string, kind int32) op { return numbered(18, "removeWatches", path, kind) }

func numbered(code int32, name, path string, n int32) op {
	return request(code, name, fmt.Sprintf(" %q %d", path, n), func(r *record) { r.path(path).i32(n) })
}

// malformed is a request with a body of the caller's own making.
func malformed(code int32, name string, body func(r *record)) op {
	return request(code, "malformed "+name, "", body)
}

// multi is a transaction.
func multi(parts ...op) op     { return compound(14, "multi", parts) }
func multiRead(parts ...op) op { return compound(22, "multiRead", parts) }

func compound(code int32, name string, parts []op) op {
	args := ""
	for _, p := range parts {
		args += " [" + p.String() + "]"
	}
	return request(code, name, args, func(r *record) {
		for _, p := range parts {
			r.i32(p.code).boolean(false).i32(-1)
			p.body(r)
		}
		r.i32(-1).boolean(true).i32(-1)
	})
}

// bytesOf makes node data of a string; null makes none.
func bytesOf(s string) []byte {
	if s == null {
		return nil
	}
	return []byte(s)
}

// short shows data so that a transcript stays readable.
func short(s string) string {
	switch {
	case s == null:
		return "null"
	case len(s) > 40:
		return fmt.Sprintf("%q...(%d bytes)", s[:16], len(s))
	}
	return fmt.Sprintf("%q", s)
}
