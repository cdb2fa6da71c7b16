package main

import (
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/spf13/cobra"
)

func (a *app) rlockCommand() *cobra.Command {
	return a.heldCommand(held{
		name: "rlock", short: "Run a command while holding a read lock", what: "the lock PATH for reading",
		long: `Any number of readers hold the lock together. A reader waits for all writers that came before
it: "menagerie lock PATH", and writers of package zkrwmutex or of Curator's
InterProcessReadWriteLock on the same path.`,
		example: `  menagerie rlock /locks/dataset -- sleep 1     # many at a time
  menagerie lock /locks/dataset -- sleep 1      # alone`,
		forms: func(s *zksync.Session, path string) (wait, try form) {
			rw := zkrwmutex.New(s, path)
			return rw.RLockContext, rw.TryRLockContext
		},
	})
}
