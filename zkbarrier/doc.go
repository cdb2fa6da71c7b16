// Package zkbarrier lets a fixed number of processes wait for each other:
//
//   - with a [Barrier] they wait for each other after each step;
//   - with a [DoubleBarrier] they begin together and finish together.
package zkbarrier
