//go:build race

package zksync

// bytesEach is what a waiting session may take: the race detector makes stacks larger.
const bytesEach = 128 << 10
