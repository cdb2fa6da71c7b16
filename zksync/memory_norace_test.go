//go:build !race

package zksync

// bytesEach is what a waiting session may take.
const bytesEach = 64 << 10
