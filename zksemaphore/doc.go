// Package zksemaphore is golang.org/x/sync/semaphore for many machines: a number of
// permits that processes share, requested n at a time, all or nothing, in the order in
// which the ZooKeeper servers queued the requests.
package zksemaphore
