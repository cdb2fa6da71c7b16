// Package zkmap has a map and a set for many machines. Every key is a node on the servers, and its value is the data of
// that node, so programs in other languages can read and write it.
//
// [Map] is sync.Map, and java.util.concurrent's ConcurrentMap: Load, Store, LoadOrStore, CompareAndSwap, Update and so on.
// Map.Watch tells the changes, and Map.Cached keeps a copy in memory, of which a Load costs no request. [Set] is
// a map without values.
//
// A map is for thousands of keys that many processes must agree on: owners of partitions, settings,
// registrations. It is not a database: all of it is in the memory of each server, and each change is agreed upon by most of
// the servers.
//
// # A change is made once
//
// Each change is one transaction, which the servers apply at most once, whatever becomes of its request: see
// internal/record. If it is unknown whether a change was applied, because the session or the context ended, the error
// satisfies zksync.Ambiguous.
//
// # What a call sees
//
// Calls that change something, and all those that return what they have found on the way, act as if each happened at
// one instant between its begin and its end. Load, Contains, and what is told by Range, Watch and Cached is
// weaker: see there.
package zkmap
