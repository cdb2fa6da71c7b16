// Package zkqueue hands elements from processes that put them to processes that take them, or that receive and
// acknowledge them: [Queue]. docs/queue.md says when to use something else than ZooKeeper for that, with figures.
package zkqueue
