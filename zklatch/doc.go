// Package zklatch has what processes wait at for something to happen, once or from time to time:
//
//   - a [Latch], which opens when a number of events has been counted;
//   - a [Gate], which somebody closes and opens.
package zklatch
