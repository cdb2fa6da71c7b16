// Package zkatomic is sync/atomic for many machines: small values that processes change together, each change
// exactly once. docs/atomic.md has the requests.
package zkatomic
