// Package zkbarrier has what processes wait at for each other:
//
//   - a [Barrier], at which a fixed number of parties wait, step after step;
//   - a [DoubleBarrier], which they enter and leave together;
//   - a [WaitGroup], sync.WaitGroup for members that may die;
//   - a [Phaser], whose parties come and go between phases;
//   - a [Latch], which opens when a number of events has been counted;
//   - a [Gate], which somebody closes and opens.
package zkbarrier
