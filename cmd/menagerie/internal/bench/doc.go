// Package bench compares this module's mutex with go-zookeeper's lock and with the least
// that a lock on ZooKeeper can cost, in one run against the same servers.
//
// The peers take turns in short slices, so that whatever else the machine does hits all of
// them alike. An operation is an acquisition and its release with nothing in between;
// latencies are those of the acquisition alone, from the call to its return.
package bench
