// Package zkqueue hands elements from processes that put them to processes that take them, or that receive
// and acknowledge them: [Queue]. docs/queue.md has the requests, and says when to use something else.
package zkqueue
