// Package zksemaphore is golang.org/x/sync/semaphore for many machines: a number of
// permits that processes share. A request gets its n permits all at once. Requests are granted in the order in
// which the ZooKeeper servers queued them.
package zksemaphore
