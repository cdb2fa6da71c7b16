// Package zkgoose lets several processes start with the migrations of github.com/pressly/goose/v3 at the same time: one of them
// migrates, the others wait, also for databases of which goose has no lock, such as SQLite and ClickHouse.
//
//	locker := zkgoose.New(session, "/migrations/shop")
//	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithSessionLocker(locker))
//
// docs/adapters.md says what happens if the lock is lost during a migration.
package zkgoose
