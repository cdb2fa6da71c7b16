// Package interop holds the tests in which locks of other libraries contend with ours on
// one path of a real ZooKeeper: Apache Curator, kazoo and the lock in go-zookeeper. The
// foreign contenders are the small programs beside this file; see docs/interop.md.
package interop
