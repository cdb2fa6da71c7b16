// Package interop holds the tests with other libraries: Apache Curator, kazoo and the lock in
// go-zookeeper. In some, their locks contend with ours on one path of a real ZooKeeper. In others
// their recipes run on the in-process server and on a real one, and have to end alike. The
// foreign programs are beside this file and in the folders java and python; see docs/interop.md.
package interop
