// Package zkatomic is sync/atomic for many machines: small values that processes change together, each change exactly
// once, whatever becomes of its request.
//
//   - [Int64] is a number.
//   - [Value] is a value of any type, which can be watched.
//   - [Sequence] gives numbers that nobody else gets.
//   - [Slots] gives small integers, each to one holder at a time.
package zkatomic
