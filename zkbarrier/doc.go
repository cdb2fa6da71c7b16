// Package zkbarrier has what a fixed number of processes wait at for each other:
//
//   - a [Barrier], at which they wait, step after step;
//   - a [DoubleBarrier], which they enter and leave together.
package zkbarrier
