// Package zkcron runs jobs at their times, each tick once in the cluster. Every process of a service makes
// the same [Cron], registers the same jobs, and calls [Cron.Run]. The first process in a job's queue has its
// lease and runs its ticks, one after the other, until its Run ends or its session is lost. Then the next
// takes over.
//
// The job's record gets the start of a tick before the function is called, and its end when it has returned.
// A tick whose end is recorded never runs again. If the process dies between the two, or loses its lease, or
// its Run is cancelled and the function fails, the next process runs the tick again, unless the job has
// [WithAtMostOnce]. A process that was paused may still be in its function then: have the storage compare the
// token of [Tick].
//
// docs/cron.md has more, about clocks and time zones too, and the requests.
package zkcron
