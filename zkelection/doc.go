// Package zkelection elects one leader among many processes, for example the scheduler that must run exactly once
// in the cluster. The ZooKeeper servers queue the candidates in the order in which they come. The first candidate
// leads until it resigns, dies or is cut off; its lease ends before the next candidate can lead.
//
// A leader that dies and starts again with its session file (zksync.WithSessionFile) leads again at once, unless
// other candidates wait: then the oldest of them leads at once.
//
// The queue is the queue of a zksync.Mutex on the same path.
package zkelection
