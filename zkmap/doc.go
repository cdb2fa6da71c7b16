// Package zkmap has a map and a set for many machines. Every key is a node on the servers, and its value is
// the data of that node, so programs in other languages can read and write it. A map is for thousands of keys
// that many processes must agree on; each server keeps all of it in memory.
//
// Calls that change something, and what they return, act as if each happened at one instant between its begin
// and its end. Load, Contains, Range, Watch and Cached promise less. docs/map.md has the requests.
package zkmap
