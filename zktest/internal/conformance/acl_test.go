package conformance

import "fmt"

// Credentials, and the names that they prove.
const (
	alice, aliceID = "u:p", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="
	bob            = "v:q"
	rootID         = "root:qiTlqPLK7XM2ht3HMn02qRpkKIE=" // of who cleans up
)

// everything is what each operation is tried with; it is for a node that has a child.
func everything(node string) []op {
	return []op{
		exists(node, false), get(node, false), list(node, false), list2(node, false), getACL(node), syncOf(node), allChildren(node),
		multiRead(get(node, false), list(node, false)), check(node, 77),
		set(node, "new", -1), multi(set(node, "newer", -1)), multi(check(node, -1)),
		create(node+"/n", "", persistent), create2(node+"/e", "", ephemeral), container(node+"/c", ""), create(node+"/s-", "", sequential),
		multi(create(node+"/m", "", persistent)),
		remove(node+"/child", -1), multi(remove(node+"/m", -1)), remove(node, -1),
		setACL(node, 5, anyone(permAll)), setACL(node, -1, anyone(permAll)),
		list2(node, false),
	}
}

func init() {
	for _, may := range []struct {
		perms int32
		name  string
	}{
		{0, "nothing"}, {permRead, "read"}, {permWrite, "write"}, {permCreate, "create"}, {permDelete, "delete"}, {permAdmin, "admin"},
		{permAll &^ permRead, "all but read"}, {permAll &^ permWrite, "all but write"}, {permAll &^ permCreate, "all but create"},
		{permAll &^ permDelete, "all but delete"}, {permAll &^ permAdmin, "all but admin"}, {32, "an unknown permission"}, {63, "more than all"},
	} {
		add("each operation where everybody may: "+may.name, func(w *world) {
			a := w.join("A")
			a.all(create("~/n", "", persistent), create("~/n/child", "", persistent), setACL("~/n", -1, anyone(may.perms), grant{permAll, "digest", aliceID}))
			a.all(everything("~/n")...)
		})
	}
	add("each operation of the one who may everything", func(w *world) {
		a := w.join("A")
		a.all(auth("digest", alice), create("~/n", "", persistent), create("~/n/child", "", persistent), setACL("~/n", -1, grant{permAll, "digest", aliceID}))
		a.all(everything("~/n")...)
	})
	add("each operation of somebody else", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(auth("digest", alice), create("~/n", "", persistent), create("~/n/child", "", persistent), setACL("~/n", -1, grant{permAll, "digest", aliceID}))
		b.do(auth("digest", bob))
		b.all(everything("~/n")...)
	})
	told("getACL and setACL", getACL("~"), setACL("~", -1, anyone(permAll), grant{permRead, "digest", aliceID}), getACL("~"),
		setACL("~", 1, anyone(permAll)), setACL("~", 1, anyone(permAll)), setACL("~", -3, anyone(permAll)), getACL("~"))
	told("getACL and setACL of what does not exist", getACL("~/x"), setACL("~/x", -1, open...), setACL("~/x", 4, open...), getACL("~/x/y"))
	told("getACL and setACL of paths that are not valid", getACL("a"), getACL("~/"), getACL("~//"), setACL("", -1, open...), setACL("a", -1, open...),
		setACL("~/", -1, open...), setACL("~//", -1, open...), setACL(null, -1, open...))
	told("getACL without a path", getACL(null), exists("~", false))
	told("who may read, but not change, access sees no password", create("~/n", "", persistent),
		setACL("~/n", -1, anyone(permRead), grant{permAll, "digest", aliceID}), getACL("~/n"), auth("digest", alice), getACL("~/n"))
	told("who may change, but not read, sees access", create("~/n", "", persistent), setACL("~/n", -1, anyone(permAdmin), grant{permAll, "digest", aliceID}),
		getACL("~/n"), get("~/n", false))
	told("entries that are given twice are kept once", setACL("~", -1, anyone(permAll), anyone(permAll), grant{permRead, "ip", "127.0.0.1"}, anyone(permAll)),
		getACL("~"), setACL("~", -1, anyone(permAll), anyone(permRead)), getACL("~"))
	for _, bad := range []grant{
		{permAll, "world", "somebody"}, {permAll, "world", ""}, {permAll, "nothing", "x"}, {permAll, "", ""}, {permAll, "digest", "no-colon"},
		{permAll, "digest", "a:b:c"}, {permAll, "digest", ""}, {permAll, "digest", ":"}, {permAll, "digest", "a:"}, {permAll, "digest", ":b"},
		{permAll, "ip", ""}, {permAll, "ip", "300.1.1.1"}, {permAll, "ip", "127.0.0.1/33"}, {permAll, "ip", "127.0.0.1/-1"}, {permAll, "ip", "::1"},
		{permAll, "ip", "127.0.0"}, {permAll, "ip", "127.0.0.1/x"}, {permAll, "ip", "10.0.0.0/8"}, {permAll, "ip", "127.0.0.1/0"}, {permAll, "ip", "127.0.0.1/"}, {permAll, "ip", "𝟏𝟐𝟕.0.0.1"},
		{permAll, "auth", ""}, {permAll, "auth", "anything"}, {permAll, "super", "x"}, {permAll, "sasl", "x"}, {permAll, "x509", "x"},
		{permAll, null, "anyone"}, {permAll, "world", null}, {permAll, "digest", null}, {permAll, "ip", null}, {permAll, "auth", null}, {permAll, null, null},
		{0, "world", "anyone"}, {-1, "world", "anyone"},
	} {
		told(fmt.Sprintf("is this an entry: %d %q %q", bad.perms, bad.scheme, bad.id),
			create("~/n", "", persistent), setACL("~/n", -1, bad, grant{permAll, "digest", aliceID}), auth("digest", alice), getACL("~/n"),
			createACL("~/m", "", persistent, []grant{anyone(permAll), bad}), getACL("~/m"))
	}
	told("the auth scheme stands for who one is", auth("digest", alice), createACL("~/n", "", persistent, []grant{{permAll, "auth", ""}}), getACL("~/n"),
		setACL("~/n", -1, grant{permAll, "auth", "ignored"}, anyone(permRead)), getACL("~/n"))
	told("the auth scheme stands for all that one is", auth("digest", alice), auth("digest", bob), auth("digest", "root:root"),
		createACL("~/n", "", persistent, []grant{{permAll, "auth", ""}}), getACL("~/n"), createACL("~/m", "", persistent, []grant{{permRead, "auth", ""}, {permAll, "auth", ""}}),
		getACL("~/m"))
	told("setAuth with the world scheme", auth("world", "anyone"), exists("~", false))
	told("setAuth with a scheme that does not exist", auth("nothing", "x"), exists("~", false))
	told("setAuth with an empty scheme", auth("", "x"), exists("~", false))
	told("setAuth without a scheme", auth(null, "x"), exists("~", false))
	told("setAuth without credentials", auth("digest", null), exists("~", false))
	told("setAuth with the auth scheme", auth("auth", "x"), exists("~", false))
}

func init() {
	told("setAuth with the sasl scheme", auth("sasl", "x"), exists("~", false))
	told("setAuth with the super scheme", auth("super", "x"), exists("~", false))
	add("the list at the time of the operation counts", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(auth("digest", alice), create("~/n", "x", persistent))
		b.do(get("~/n", true))
		a.do(setACL("~/n", -1, grant{permAll, "digest", aliceID}))
		b.all(get("~/n", false), exists("~/n", false))
		a.do(setACL("~/n", -1, anyone(permRead), grant{permAll, "digest", aliceID}))
		b.all(get("~/n", false), set("~/n", "y", -1))
	})
	add("who may not read a node is not told of its change", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(auth("digest", alice), create("~/n", "x", persistent))
		b.all(get("~/n", true), list("~/n", true), exists("~/m", true), list("~", true))
		a.all(setACL("~/n", -1, grant{permAll, "digest", aliceID}), set("~/n", "y", -1), create("~/n/c", "", persistent),
			createACL("~/m", "", persistent, []grant{{permAll, "digest", aliceID}}))
		b.fence()
		a.all(setACL("~/n", -1, anyone(permAll)), set("~/n", "z", -1), set("~/m", "z", -1), remove("~/n/c", -1), remove("~/n", -1))
		b.fence()
	})
	told("ip entries that match", createACL("~/a", "x", persistent, []grant{{permAll, "ip", "127.0.0.1"}}), get("~/a", false),
		createACL("~/b", "x", persistent, []grant{{permAll, "ip", "127.0.0.0/8"}}), get("~/b", false),
		createACL("~/c", "x", persistent, []grant{{permAll, "ip", "127.255.255.255/1"}}), get("~/c", false),
		createACL("~/d", "x", persistent, []grant{{permAll, "ip", "١٢٧.0.0.1"}}), get("~/d", false), // digits of any script
		createACL("~/e", "x", persistent, []grant{{permAll, "ip", "127.0.0.2/１６"}}), get("~/e", false))
	told("ip entries that do not match", createACL("~/a", "x", persistent, []grant{{permAll, "ip", "127.0.0.2"}}), get("~/a", false),
		createACL("~/b", "x", persistent, []grant{{permAll, "ip", "126.0.0.0/8"}}), get("~/b", false),
		createACL("~/c", "x", persistent, []grant{{permAll, "ip", "127.0.0.2/31"}}), get("~/c", false))
	told("create needs no permission on the new node itself", createACL("~/a", "x", ephemeral, []grant{{permRead, "digest", aliceID}}), get("~/a", false),
		remove("~/a", -1))
	told("somebody else's list stops a create and a delete below", createACL("~/p", "", persistent, []grant{anyone(permRead), {permAll, "digest", aliceID}}),
		create("~/p/n", "", persistent), auth("digest", alice), create("~/p/n", "", persistent), remove("~/p/n", -1))
	identities()
}

// identities are scenarios about who one is.
func identities() {
	told("setAuth twice with the same", auth("digest", alice), auth("digest", alice), whoAmI())
	told("setAuth with the ip scheme", auth("ip", ""), auth("ip", "10.0.0.1"), whoAmI())
	told("setAuth with credentials of many forms", auth("digest", "u"), whoAmI(), auth("digest", ""), whoAmI(), auth("digest", "a:b:c"), whoAmI(),
		auth("digest", ":"), whoAmI(), auth("digest", "ä:ö"), whoAmI())
	add("setAuth under the xid that clients use", func(w *world) {
		a := w.join("A")
		a.await(a.sendAs(xidAuth, auth("digest", alice)))
		a.do(whoAmI())
		a.await(a.sendAs(xidAuth, auth("nothing", "")))
		a.ended()
	})
	add("who one is belongs to the connection, not the session", func(w *world) {
		a := w.join("A")
		a.all(auth("digest", alice), whoAmI(), createACL("~/n", "x", persistent, []grant{{permAll, "digest", aliceID}}), get("~/n", false))
		a.drop()
		b := w.resume("B", a.session, a.seen)
		b.all(whoAmI(), get("~/n", false), auth("digest", alice), get("~/n", false))
	})
}
