// Package zkbarrier has what processes wait at for each other: a Latch, which opens when
// a number of events has been counted, and a Gate, which somebody closes and opens.
package zkbarrier
