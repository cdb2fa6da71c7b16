// Package zkcron runs jobs at their times, each tick once in the cluster: the nightly job that must not run on every
// machine that has it. Every process of a service makes the same [Cron], registers the same jobs with [Cron.At] and
// [Cron.Every], and calls [Cron.Run].
//
// # Who runs a tick
//
// Each job has a queue. Whoever is at its head holds the job's lease and runs its ticks, one after the other. All others
// wait: nobody competes for a tick. The holder keeps the lease between ticks, until its Run ends, its process dies or its
// session is lost. Then the process that has waited longest takes over. So one process runs all ticks of a job, and the
// jobs of a schedule are not spread: the process that starts first runs them all.
//
// # What "once" means here
//
// A tick is known by its scheduled time. Before the function is called, the start of the tick is written to the job's
// record; when the function has returned, so is the end. Both writes are applied only while the lease holds, and the
// record only moves forward. So no tick whose end is recorded runs again, whatever happens to clocks, connections and
// processes.
//
// If the process dies between the two writes, or loses its lease, or its Run is cancelled and the function returns an
// error, the record tells that the tick was begun and not ended. The next holder runs it again, however late that is. With
// [WithAtMostOnce] it is not run again, and its record has an error. A process that was paused may still be in its function
// while another process runs the tick again. No lock service can prevent that. The token of [Tick] can, if the storage
// refuses a smaller one than the greatest it has seen.
//
// A tick may also pass while the one before it still runs, while no process is there, or while the lease of a dead process
// has not ended yet. [WithMissed] says what becomes of it. A job never runs beside itself, but for such a paused process.
//
// # Clocks and time zones
//
// A process goes by its own clock, as long as that is within five seconds of the clock of the ZooKeeper servers' leader.
// It learns that clock from the answers to its writes: when it takes a job over, and at the start of each tick. If the
// difference is provably greater, the process goes by the leader's clock, and logs that. So no tick begins more than
// five seconds before its time by the leader's clock, even if the process's clock is an hour ahead.
//
// A spec without a zone is in UTC, because the local zone may differ from machine to machine. [WithLocation], or a prefix such as
// "CRON_TZ=Europe/Berlin", names another one. When the clocks of that zone change, a time that they skip has no tick
// on that day, and a time that they show twice has two: "30 2 * * *" in Berlin has none on the last Sunday of March, and
// two on the last Sunday of October. "0 3 * * *" there, and every daily spec in UTC, has one on each day.
package zkcron
