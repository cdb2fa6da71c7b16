package conformance

import (
	"fmt"
	"strings"
)

func init() {
	for _, code := range []int32{-100, -12, -1, 0, 10, 23, 50, 98, 99, 108, 1000, 1<<31 - 1, -1 << 31} {
		add(fmt.Sprintf("operation %d does not exist", code), func(w *world) {
			a := w.join("A")
			a.do(bare(code, "unknown"))
			a.ended()
			w.join("B").do(exists("~", false))
		})
	}
	malformedBodies([]op{
		create("~/n", "data", persistent), create2("~/n", "data", persistent), container("~/n", "data"), createTTL("~/n", "data", ttlFlag, 1000), remove("~/n", -1),
		exists("~/n", true), get("~/n", false), set("~/n", "data", -1), getACL("~/n"), setACL("~/n", -1, open...), list("~/n", false), list2("~/n", false),
		syncOf("~/n"), check("~/n", -1), multi(create("~/m", "", persistent)), multiRead(get("~/n", false)), auth("digest", alice), setWatches(1, []string{"~/n"}, nil, nil),
		setWatches2(1, []string{"~/n"}, nil, nil, []string{"~/n"}, []string{"~/n"}), addWatch("~/n", 0), checkWatches("~/n", 1), removeWatches("~/n", 1),
		ephemerals("~/n"), allChildren("~/n"),
	})
	for _, lie := range []int32{-2, -1, 2, 1000, 1 << 30, -1 << 31} {
		add(fmt.Sprintf("a number of access entries that is a lie: %d", lie), func(w *world) {
			a := w.join("A")
			a.do(malformed(1, "create", func(r *record) { r.path("~/n").buf(nil).i32(lie).acl(open).i32(0) }))
			b := w.join("B")
			b.do(malformed(7, "setACL", func(r *record) { r.path("~").i32(lie).i32(31).str("world").str("anyone").i32(-1) }))
			w.join("C").do(list2("~", false))
		})
		add(fmt.Sprintf("a number of paths that is a lie: %d", lie), func(w *world) {
			a := w.join("A")
			a.do(malformed(101, "setWatches", func(r *record) { r.i64(0).i32(lie).path("~").i32(0).i32(0) }))
			w.join("C").do(list2("~", false))
		})
	}
	add("a request without a body or an operation", func(w *world) {
		for _, b := range []string{"", "\x00", "\x00\x00\x00\x01", "\x00\x00\x00\x01\x00\x00\x00"} {
			a := w.join("A")
			a.sendRaw(fmt.Sprintf("%d bytes", len(b)), frame([]byte(b)))
			a.ended()
		}
		w.join("B").do(exists("~", false))
	})
	add("a frame with a negative length", func(w *world) {
		for _, n := range []int32{-1, -2, -1 << 31} {
			a := w.join("A")
			a.sendRaw("a length", (&record{}).i32(n).b)
			a.ended()
		}
		w.join("B").do(exists("~", false))
	})
	add("a frame that is announced too long", func(w *world) {
		for _, n := range []int32{1 << 20, 1<<20 + 1, 1 << 24, 1<<31 - 1} {
			a := w.join("A")
			a.sendRaw(fmt.Sprintf("the length %d", n), (&record{}).i32(n).b)
			a.ended()
		}
		w.join("B").do(exists("~", false))
	})
	add("the longest frame", func(w *world) {
		a := w.join("A")
		a.do(create("~/n", "", persistent))
		overhead := 8 + 4 + len(w.base) + 2 + 4 + 4
		a.all(set("~/n", strings.Repeat("x", 1<<20-1-overhead), -1), get("~/n", false))
		a.do(set("~/n", "short", -1))
	})
}

func init() {
	add("the longest connect request", func(w *world) {
		a := w.dial("A")
		a.greet(hello{password: make([]byte, 1<<20-1-29)})
		b := w.dial("B")
		b.sendRaw("a length", (&record{}).i32(1<<20).b)
		b.ended()
	})
	add("a frame that is cut off", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		a.sendRaw("half a frame", frame([]byte("0123456789abcdef"))[:10])
		a.drop()
		w.resume("B", a.session, a.seen).do(list2("~", false))
	})
	add("a frame in pieces", func(w *world) {
		a := w.join("A")
		r := &record{base: w.base}
		r.i32(1).i32(3).path("~").boolean(false)
		a.asked[1] = exists("~", false)
		for _, b := range frame(r.b) {
			a.sendRaw("a byte", []byte{b})
		}
		a.await(1)
	})
	told("a second connect request", malformed(-10, "createSession", func(r *record) {}), exists("~", false),
		malformed(-10, "createSession", func(r *record) { r.raw("abc") }), exists("~", false))
	told("reconfig where nobody may", malformed(16, "reconfig", func(r *record) { r.str("server.1=x").str("2").str(null).i64(-1) }), exists("~", false),
		malformed(16, "reconfig", func(r *record) { r.str(null).str(null).str(null) }), exists("~", false), multi(create("~/a", "", persistent).as(16)), exists("~", false))
	told("a token where there is no SASL", malformed(102, "sasl", func(r *record) { r.str("token") }), malformed(102, "sasl", func(r *record) { r.i32(-1) }), exists("~", false),
		bare(102, "sasl"), exists("~", false))
	add("xids are the client's own business", func(w *world) {
		a := w.join("A")
		for _, xid := range []int32{5, 5, 0, -3, 1<<31 - 1, -1 << 31, 1} {
			a.await(a.sendAs(xid, exists("~", false)))
		}
	})
	add("requests in flight together are answered in their order", func(w *world) {
		a := w.join("A")
		var last int32
		for _, o := range []op{create("~/a", "", persistent), get("~/a", true), set("~/a", "x", 0), list("~", false), bare(11, "ping"), remove("~/a", 1), exists("~/a", false),
			multi(create("~/b", "", persistent), set("~/b", "", 0)), syncOf("~/b"), get("~/b", false), create("~/x/y", "", persistent), list2("~", false)} {
			last = a.send(o)
		}
		a.await(last)
	})
}

// malformedBodies adds what a server must not stumble over, for each operation.
func malformedBodies(ops []op) {
	for _, o := range ops {
		add("a body that ends early: "+o.name, func(w *world) {
			whole := &record{base: w.base}
			o.body(whole)
			b := w.join("B")
			for _, n := range []int{0, 1, 3, 4, 5, len(whole.b) - 4, len(whole.b) - 1} {
				a := w.join("A")
				a.do(malformed(o.code, fmt.Sprintf("%s, %d bytes of %d", o.name, n, len(whole.b)), func(r *record) { r.raw(string(whole.b[:n])) }))
				b.do(list2("~", false))
			}
		})
		add("a body with something behind it: "+o.name, func(w *world) {
			a := w.join("A")
			a.do(malformed(o.code, o.name, func(r *record) {
				o.body(r)
				r.raw("more")
			}))
			w.join("B").do(list2("~", false))
		})
		add("a first length that is a lie: "+o.name, func(w *world) {
			for _, n := range []int32{-2, 5000, 1 << 20, 1<<31 - 1, -1 << 31} {
				a := w.join("A")
				a.do(malformed(o.code, fmt.Sprintf("%s, length %d", o.name, n), func(r *record) { r.i32(n).raw("/abcdefgh\x00\x00\x00\x00\x00\x00\x00") }))
			}
			w.join("B").do(list2("~", false))
		})
	}
}
