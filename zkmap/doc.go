// Package zkmap has a map and a set for many machines. Every key is a node on the servers, and its value is the data of
// that node, so programs in other languages can read and write it.
//
// [Map] has the methods of sync.Map, and some of java.util.concurrent's ConcurrentMap. Map.Watch reports the changes, and
// Map.Cached keeps a copy in memory, of which a Load costs no request. [Set] is a map without values.
//
// A map is for thousands of keys that many processes must agree on: owners of partitions, settings,
// registrations. It is not a database: each server keeps all of it in memory, and most of the servers agree on each change.
//
// Each change is one transaction, which is applied at most once, whatever becomes of its request.
//
// # What a call sees
//
// Calls that change something, and all those that return what they have found on the way, act as if each happened at
// one instant between its begin and its end. Load, Contains, Range, Watch and Cached promise less: see there.
//
// # Requests
//
// The first use of an object costs one more, and the first use of the path a few. While other processes change the same key, or
// remove keys, there may be more.
//
//	Load, Contains, Delete, Remove         1
//	Store, Add                             1; a new key 2
//	LoadOrStore                            1 if it stores, 2 if it loads
//	Swap, LoadAndDelete, CompareAndSwap    2; 3 if nothing is changed
//	Update                                 3
package zkmap
