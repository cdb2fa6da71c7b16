// Package storm holds one test: random use of all recipes under random faults, with oracles.
//
// A seed is one game in virtual time: servers of some kind, a few processes,
// and goroutines that use two of the recipes while faults come and go. docs/guarantees/faults.md has tables of what is used. All
// choices are drawn from the seed, each goroutine's from a stream of its own, so a seed plays the same game again as
// far as the scheduler allows. When the faults are over everybody must be able to finish, and
// nothing may be left.
//
// A recipe is one file: what its goroutines do, what must be true of it, and how it is used when all is well.
//
// MENAGERIE_STORM_SEEDS is the number of seeds, from MENAGERIE_STORM_SEED on, which alone repeats one seed and
// prints everything that was done.
package storm
