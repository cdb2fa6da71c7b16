// Package zkrwmutex is sync.RWMutex for many machines: a lock that many readers or
// one writer hold, in the order in which the ZooKeeper servers queued them. Neither
// readers nor writers starve.
//
// Curator's InterProcessReadWriteLock on the same path queues in the same order and by
// the same rules.
package zkrwmutex
