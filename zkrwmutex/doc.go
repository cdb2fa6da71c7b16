// Package zkrwmutex is sync.RWMutex for many machines. Curator's InterProcessReadWriteLock on the same path
// queues in the same order and by the same rules.
package zkrwmutex
