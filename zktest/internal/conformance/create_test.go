package conformance

// told adds a scenario of one session that does one thing after the other.
func told(name string, ops ...op) {
	add(name, func(w *world) { w.join("A").all(ops...) })
}

func init() {
	told("create answers the path",
		create("~/a", "x", persistent), get("~/a", false), exists("~", false))
	told("create stores null data as null", create("~/a", null, persistent), get("~/a", false))
	told("create stores empty data", create("~/a", "", persistent), get("~/a", false))
	told("create stores bytes that are no text", create("~/a", "\xff\x00\xfe", persistent), get("~/a", false))
	told("create of a node that exists",
		create("~/a", "x", persistent), create("~/a", "y", persistent), get("~/a", false), exists("~", false))
	told("create below a node that does not exist", create("~/a/b", "", persistent), exists("~/a", false))
	told("create below an ephemeral node",
		create("~/a", "", ephemeral), create("~/a/b", "", persistent), create("~/a/b", "", ephemeral),
		create("~/a/b", "", sequential), exists("~/a", false))
	told("create2 answers the status", create2("~/a", "xyz", persistent), create2("~/a", "", persistent),
		create2("~/b", "", ephemeral), create2("~/c-", "", sequential), create2("~/x/y", "", persistent))
	told("create of the root", create("/", "", persistent), create2("/", "", persistent))
	told("create of the server's own nodes",
		create("/zookeeper", "", persistent), create("/zookeeper/quota", "", persistent), create("/zookeeper/config", "", persistent))
	told("every path that is not valid",
		create("", "", persistent), create("a", "", persistent), create("a/b", "", persistent), create("~/", "", persistent),
		create("~//a", "", persistent), create("~/.", "", persistent), create("~/..", "", persistent), create("~/a/./b", "", persistent),
		create("~/a/../b", "", persistent), create("~/...", "", persistent), create("~/.a", "", persistent))
	told("characters that a path may not have",
		create("~/a\x00b", "", persistent), create("~/a\x01", "", persistent), create("~/a\x1f", "", persistent), create("~/a\x20", "", persistent),
		create("~/a\x7f", "", persistent), create("~/a\u0080", "", persistent), create("~/a\u009f", "", persistent), create("~/a\u00a0", "", persistent),
		create("~/a\ue000", "", persistent), create("~/a\uf8ff", "", persistent), create("~/a\ufff0", "", persistent), create("~/a\uffef", "", persistent),
		create("~/a\U0001f600", "", persistent), list("~", false))
	told("names outside of ASCII", create("~/äöü", "", persistent), create("~/日本", "", persistent), create("~/日本/語", "", ephemeral),
		list("~", false), get("~/日本", false), remove("~/äöü", -1))
	told("a path of bytes that are no UTF-8", create("~/a\xff\xfe", "", persistent), list("~", false), exists("~/a\xff\xfe", false))
	told("a path that is null", create(null, "", persistent), create2(null, "", persistent), exists("~", false))
	told("every flag that is unknown",
		create("~/a", "", 7), create("~/a", "", 8), create("~/a", "", -1), create("~/a", "", 1<<30), create2("~/a", "", 7), exists("~", false))
	told("the container flag in a create", create("~/a", "", containerFlag), create2("~/b", "", containerFlag), list2("~", false))
	told("createContainer", container("~/a", "x"), get("~/a", false), create("~/a/b", "", persistent), container("~/a", ""), list2("~/a", false),
		container("~/x/y", ""))
	told("createContainer with other flags", create("~/a", "", persistent).as(19), create("~/b", "", ephemeral).as(19),
		create("~/c", "", sequential).as(19), create("~/d", "", ephemeralSeq).as(19), list2("~", false), exists("~/b", false))
	told("a container below an ephemeral node", create("~/a", "", ephemeral), container("~/a/b", ""))
	told("TTL flags in a create", create("~/a", "", ttlFlag), create("~/a", "", ttlSeqFlag), create2("~/a", "", ttlFlag),
		create("~/a", "", ttlFlag).as(19), exists("~", false))
	told("createTTL while extended types are off", createTTL("~/a", "", ttlFlag, 1000), createTTL("~/a", "", ttlSeqFlag, 1000), exists("~", false))
	told("createTTL without a TTL flag", createTTL("~/a", "", persistent, 1000), createTTL("~/b", "", ephemeral, 1000),
		createTTL("~/c", "", sequential, 1000), createTTL("~/d", "", containerFlag, 1000), list2("~", false))
	told("an empty access control list", createACL("~/a", "", persistent, nil), createACL("~/a", "", ephemeral, []grant{}), exists("~", false))
	told("create counts in its parent, whatever it makes",
		create("~/p", "", persistent), exists("~", false), create("~/e", "", ephemeral), exists("~", false),
		create("~/s-", "", sequential), exists("~", false), container("~/c", ""), exists("~", false))
	told("the checks of create are made in this order",
		create("~/a", "", ephemeral), createACL("~/a", "", persistent, nil), createACL("~/a/b", "", persistent, nil), createACL("~/x/y", "", persistent, nil),
		createACL("~/x//y", "", 9, nil), create("~/a//", "", persistent), create("~/x//", "", persistent), create("~/a/.", "", persistent),
		createACL("nothing", "", persistent, nil))
	told("a failing create costs a transaction", exists("~", false), create("~/x/y", "", persistent), exists("~", false),
		create("", "", persistent), exists("~", false), create("~/a", "", 9), exists("~", false))
}
