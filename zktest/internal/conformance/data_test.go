package conformance

import "strings"

func init() {
	told("setData answers the status", create("~/a", "x", persistent), set("~/a", "yz", -1), set("~/a", "", -1), set("~/a", null, -1), get("~/a", false))
	told("setData with the version", create("~/a", "", persistent), set("~/a", "1", 0), set("~/a", "2", 0), set("~/a", "2", 1), set("~/a", "3", 7),
		set("~/a", "3", -2), get("~/a", false))
	told("setData of a node that does not exist", set("~/a", "", -1), set("~/a/b", "", 3))
	told("setData of paths that are not valid", set("", "", -1), set("a", "", -1), set("~/", "", -1), set("~//a", "", -1), set(null, "", -1), set("~/a\x00", "", -1))
	told("setData leaves everything else alone", create("~/a", "", persistent), create("~/a/b", "", persistent), setACL("~/a", -1, open...), set("~/a", "x", -1),
		exists("~/a", false), exists("~", false))
	told("setData of an ephemeral node keeps its owner", create("~/e", "", ephemeral), set("~/e", "x", 0), get("~/e", false))
	told("setData on the server's own nodes", set("/zookeeper/config", "x", -1), get("/zookeeper/config", false))
	told("getData of a node that does not exist", get("~/a", false), get("~/a", true), get("~/a/b/c", false))
	told("getData of paths that are not valid", get("a", false), get("~/", false), get("~//", false), get("~/a\x00b", false), get("~/.", false))
	told("getData without a path", get(null, false), exists("~", false))
	told("exists of a node that does not exist", exists("~/a", false), exists("~/a", true), exists("~/a/b", false))
	told("exists of paths that are not valid", exists("a", false), exists("~/", false), exists("~//", false), exists("~/a\x00b", false),
		exists("~/..", false), exists("~/a\x01", false))
	told("exists without a path", exists(null, false), exists("~", false))
	told("sync answers the path as it is", syncOf("~"), syncOf("/"), syncOf("~/nothing"), syncOf("not a path"), syncOf(""), syncOf("~//"), syncOf(null))
	told("reads cost no transaction", exists("~", false), get("~", false), list("~", false), list2("~", false), getACL("~"), syncOf("~"), exists("~/x", false))
	told("large data", create("~/a", strings.Repeat("x", 100_000), persistent), get("~/a", false), set("~/a", strings.Repeat("y", 500_000), 0), get("~/a", false))

	told("getChildren", list("~", false), create("~/b", "", persistent), create("~/a", "", ephemeral), list("~", false), list2("~", false))
	told("getChildren of a node that does not exist", list("~/a", false), list2("~/a", false), list("~/a", true), list2("~/a", true))
	told("getChildren of paths that are not valid", list("a", false), list2("~/", false), list("~//", false), list2("~/\x00", false))
	told("getChildren without a path", list(null, false), exists("~", false))
	told("getChildren2 without a path", list2(null, false), exists("~", false))
	add("children are listed in the order of a hash table", func(w *world) {
		a := w.join("A")
		for _, name := range strings.Fields("apple pear plum cherry fig grape lemon lime mango melon nut olive peach quince rose") {
			a.do(create("~/"+name, "", persistent))
		}
		a.all(list("~", false), remove("~/fig", -1), remove("~/rose", -1), create("~/fig", "", persistent), list("~", false))
	})
	add("names with the same hash are listed in the order of their creation", func(w *world) {
		a := w.join("A")
		for _, name := range strings.Fields("AaAa BBBB AaBB BBAa Aa BB") {
			a.do(create("~/"+name, "", persistent))
		}
		a.all(list("~", false), remove("~/BBBB", -1), create("~/BBBB", "", persistent), list("~", false))
	})
	add("hundred children", func(w *world) {
		a := w.join("A")
		for range 100 {
			a.do(create("~/member-", "", sequential))
		}
		a.all(list("~", false), remove("~/member-0000000050", -1), list2("~", false))
	})
}
