// Package zkatomic is sync/atomic for many machines: small values that processes change together, each change
// exactly once. docs/atomic.md has the requests.
//
//   - [Int64] is a number.
//   - [Value] is a value of any type, which can be watched.
//   - [Sequence] gives numbers, each once.
//   - [Slots] gives small integers, each to one holder at a time.
package zkatomic
