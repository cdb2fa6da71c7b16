package conformance

import (
	"fmt"
	"strings"
)

func init() {
	for _, ms := range []struct {
		name string
		ms   int32
	}{{"1 ms", 1}, {"0", noTimeout}, {"negative", -5}, {"just below the shortest", 999}, {"the shortest", 1000}, {"1001 ms", 1001}, {"4321 ms", 4321},
		{"the longest", 60000}, {"just above the longest", 60001}, {"the largest number", 1<<31 - 1}} {
		add("a session timeout of "+ms.name, func(w *world) {
			c := w.dial("A")
			c.greet(hello{timeout: ms.ms})
			c.do(exists("~", false))
		})
	}
	add("a connect request of an old client, without the read-only flag", func(w *world) {
		c := w.dial("A")
		c.greet(hello{readOnly: -1})
		c.do(exists("~", false))
	})
	add("a connect request of a client that accepts a read-only server", func(w *world) {
		c := w.dial("A")
		c.greet(hello{readOnly: 1})
		c.do(create("~/a", "", persistent))
	})
	add("a connect request of another protocol version", func(w *world) {
		c := w.dial("A")
		c.greet(hello{version: 7})
		c.do(exists("~", false))
	})
	for _, password := range []string{"", "abc", "0123456789abcdef", strings.Repeat("x", 100)} {
		add(fmt.Sprintf("a new session with a password of its own: %d bytes", len(password)), func(w *world) {
			c := w.dial("A")
			c.greet(hello{password: []byte(password)})
			c.do(exists("~", false))
		})
	}
	add("a session ends and its ephemeral nodes go", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(create("~/e", "", ephemeral), create("~/p", "", persistent), create("~/p/e", "", ephemeralSeq), exists("~/e", false))
		b.all(exists("~/e", false), exists("~/p/e0000000000", false))
		a.close()
		b.all(exists("~/e", false), list2("~", false), list2("~/p", false))
	})
	add("a session that has ended cannot be resumed", func(w *world) {
		a := w.join("A")
		s := a.session
		a.close()
		w.resume("B", s, 0).ended()
	})
	add("a session is resumed after the connection was cut", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		a.drop()
		b := w.resume("B", a.session, a.seen)
		b.all(exists("~/e", false), create("~/f", "", ephemeral), list2("~", false))
		b.close()
		w.join("C").do(list2("~", false))
	})
}

func init() {
	add("a session moves to another connection, and the old one is closed", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		b := w.resume("B", a.session, a.seen)
		a.ended()
		b.all(exists("~/e", false), create("~/f", "", ephemeral))
	})
	add("a session moves to and fro", func(w *world) {
		a := w.join("A")
		for range 5 {
			b := w.resume("B", a.session, a.seen)
			a.ended()
			b.do(create("~/n-", "", ephemeralSeq))
			a = b
		}
		a.do(list2("~", false))
	})
	add("resuming with another timeout changes it", func(w *world) {
		a := w.join("A")
		a.drop()
		for _, ms := range []int32{5000, 1, 100000} {
			b := w.dial("B")
			b.greet(hello{session: a.session.id, password: a.session.secret, timeout: ms})
			b.drop()
		}
	})
	add("resuming with a wrong password", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		a.drop()
		for _, password := range [][]byte{nil, {}, []byte("0123456789abcdef"), a.session.secret[:15], append([]byte{0}, a.session.secret...)} {
			b := w.dial("B")
			b.greet(hello{session: a.session.id, password: password})
			b.ended()
		}
		c := w.resume("C", a.session, a.seen)
		c.do(exists("~/e", false))
	})
	add("resuming with a wrong password closes the connection that there is", func(w *world) {
		a := w.join("A")
		b := w.dial("B")
		b.greet(hello{session: a.session.id, password: []byte("0123456789abcdef")})
		b.ended()
		a.ended()
	})
	add("resuming a session that never was", func(w *world) {
		for _, id := range []int64{1, -1, 0x123456789abcdef} {
			b := w.dial("B")
			b.greet(hello{session: id, password: []byte("0123456789abcdef")})
			b.ended()
		}
	})
}

func init() {
	add("resuming by an old client, without the read-only flag", func(w *world) {
		a := w.join("A")
		a.drop()
		b := w.dial("B")
		b.greet(hello{session: a.session.id, password: a.session.secret, readOnly: -1})
		b.do(exists("~", false))
		c := w.dial("C")
		c.greet(hello{session: 1, readOnly: -1})
		c.ended()
	})
	add("a client that has seen a later transaction is refused", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		b := w.dial("B")
		b.greet(hello{seen: a.seen + 1000000})
		c := w.dial("C")
		c.greet(hello{seen: a.seen + 1000000, session: a.session.id, password: a.session.secret})
		a.do(exists("~/e", false))
		d := w.dial("D")
		d.greet(hello{seen: a.seen})
		d.do(exists("~/e", false))
	})
	add("a connection that is closed before the connect request", func(w *world) {
		a := w.dial("A")
		a.drop()
		w.join("B").do(exists("~", false))
	})
	add("a request instead of a connect request", func(w *world) {
		a := w.dial("A")
		a.send(get("~", false))
		a.ended()
		w.join("B").do(exists("~", false))
	})
	add("a connect request that is too short", func(w *world) {
		for _, n := range []int{0, 1, 3, 4, 11, 12, 16, 24, 27, 28} {
			a := w.dial("A")
			a.sendRaw("a part of a connect request", frame(hello{}.encode()[:n]))
			a.greeted()
			a.ended()
		}
	})
	add("a connect request with more behind it", func(w *world) {
		a := w.dial("A")
		a.sendRaw("connect request and more", frame(append(hello{}.encode(), "more"...)))
		a.greeted()
		a.do(exists("~", false))
	})
	add("a connect request with a null password", func(w *world) {
		a := w.dial("A")
		r := &record{}
		r.i32(0).i64(0).i32(30000).i64(0).i32(-1).boolean(false)
		a.sendRaw("connect request without password", frame(r.b))
		a.greeted()
		a.do(exists("~", false))
	})
}

func init() {
	add("a password whose length is a lie", func(w *world) {
		for _, n := range []int32{-2, 1000, 1 << 30, -1 << 31} {
			a := w.dial("A")
			r := &record{}
			r.i32(0).i64(0).i32(30000).i64(0).i32(n).raw("0123456789abcdef\x00")
			a.sendRaw("connect request", frame(r.b))
			a.greeted()
			a.ended()
		}
	})
	add("closeSession", func(w *world) {
		a := w.join("A")
		a.do(create("~/e", "", ephemeral))
		a.close()
		w.join("B").do(list2("~", false))
	})
	add("closeSession with a body", func(w *world) {
		a := w.join("A")
		a.do(create("~/n", "", persistent).as(-11))
		a.ended()
	})
	add("ping", func(w *world) {
		a := w.join("A")
		a.fence()
		a.sendAs(17, bare(11, "ping"))
		a.fence()
		a.await(a.sendAs(xidPing, malformed(11, "ping", func(r *record) { r.raw("a body") })))
	})
}
