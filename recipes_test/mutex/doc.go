// Package mutex holds tests only: what zksync.Mutex and MultiLock promise, and what all
// locks promise in the same words: exclusion, order, deadlines, loss, costs.
package mutex
