// Package zkgocron lets the schedulers of several processes share the jobs of github.com/go-co-op/gocron/v2: with a [Locker] each
// tick runs in one of them, with an [Elector] all jobs run in the one that leads.
//
//	locker := zkgocron.NewLocker(session, "/jobs", time.Second)
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// gocron does not notice that a lock was lost, and does not run again what a process that died has left: package zkcron
// does. docs/adapters.md compares them.
package zkgocron
