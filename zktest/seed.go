package zktest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// SeedEnv names the environment variable with the seed of [WithReordering].
const SeedEnv = "ZKTEST_SEED"

// WithReordering keeps each reply and event back for a random time, at most limit. Messages to one client
// stay in order. A test that fails prints the seed.
func WithReordering(limit time.Duration) Option {
	return func(o *options) { o.cfg.Reordering = limit }
}

// WithSeed sets the seed of [WithReordering].
func WithSeed(seed uint64) Option {
	return func(o *options) { o.cfg.Seed, o.seeded = seed, true }
}

// chooseSeed sets a seed where one is needed and none is given.
func (o *options) chooseSeed() error {
	if o.cfg.Reordering <= 0 || o.seeded {
		return nil
	}
	o.cfg.Seed = rand.Uint64()
	text, ok := os.LookupEnv(SeedEnv)
	if !ok {
		return nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("zktest: %s=%q is no seed: want a number from 0 to %d", SeedEnv, text, uint64(math.MaxUint64))
	}
	o.cfg.Seed = seed
	return nil
}

// tellSeed says how a failed test can be repeated.
func (o *options) tellSeed(t TB) {
	t.Helper()
	if o.cfg.Reordering > 0 && t.Failed() {
		t.Logf("zktest: the replies were reordered with seed %d; %s=%[1]d, or WithSeed, repeats that", o.cfg.Seed, SeedEnv)
	}
}

// Seed returns the seed of [WithReordering].
func (s *Server) Seed() uint64 { return s.opts.cfg.Seed }
