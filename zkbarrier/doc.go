// Package zkbarrier lets a fixed number of processes wait for each other:
//
//   - at a [Barrier] they wait after each step;
//   - a [DoubleBarrier] they enter and leave together.
package zkbarrier
