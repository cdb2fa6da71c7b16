// Package zkcron runs jobs at their times, each tick once in the cluster: the nightly job that must not run
// on every machine that has it. Every process of a service makes the same [Cron], registers the same jobs,
// and calls [Cron.Run].
//
// The first process in a job's queue has its lease and runs its ticks, one after the other, until its Run
// ends or its session is lost. Then the next process takes over.
//
// # What "once" means here
//
// The job's record gets the start of a tick before the function is called, and its end when the function has
// returned. A tick whose end is recorded never runs again. If the process dies between the two, or loses its
// lease, or its Run is cancelled and the function returns an error, the next process runs the tick again,
// unless the job has [WithAtMostOnce]. A process that was paused may still be in its function then: have the
// storage compare the token of [Tick].
//
// A tick may also pass while the one before it still runs, or while no process has the lease: see
// [WithMissed].
//
// docs/cron.md has more, about clocks and time zones too, and the requests.
package zkcron
