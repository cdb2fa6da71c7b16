// Package zkcron runs jobs at their times, each tick once in the cluster: the nightly job that must not run on every
// machine that has it. Every process of a service makes the same [Cron], registers the same jobs with [Cron.At] and
// [Cron.Every], and calls [Cron.Run].
//
// # Which process runs a tick
//
// Each job has a queue. The first process in it has the job's lease and runs its ticks, one after the other, until its Run ends,
// its process dies or its session is lost. Then the next process takes over. So the jobs of a schedule are not spread:
// usually one process runs them all.
//
// # What "once" means here
//
// A tick is known by its scheduled time. Before the function is called, the job's record gets the start of the tick; when the
// function has returned, it gets the end. Both writes need the lease, and the record only moves forward. So a tick whose end is
// recorded never runs again.
//
// If the process dies between the two writes, or loses its lease, or its Run is cancelled and the function returns an
// error, the next process runs the tick again, however late that is, unless the job has [WithAtMostOnce]. A process that was
// paused may still be in its function then. No lock service can prevent that. The token of [Tick] can, if the storage refuses
// tokens smaller than the greatest it has seen.
//
// A tick may also pass while the one before it still runs, or while no process has the lease. [WithMissed] says what happens then.
// Apart from such a paused process, a job never runs beside itself.
//
// # Clocks and time zones
//
// A process uses its own clock while that is within five seconds of the clock of the ZooKeeper servers' leader. It compares them
// with the answers to its writes. If the difference is provably greater, it uses the leader's clock, and logs that. So no tick
// begins more than five seconds early by the leader's clock.
//
// A spec without a zone is in UTC, because the local zone may differ from machine to machine. [WithLocation], or a prefix such as
// "CRON_TZ=Europe/Berlin", names another zone. A time that the clocks of the zone skip has no tick on that day, and a time that
// they show twice has two: "30 2 * * *" in Berlin has none on the last Sunday of March, and two on the last Sunday of October.
//
// docs/cron.md has more about all of this, and the requests.
package zkcron
