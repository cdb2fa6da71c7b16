// Package zklatch lets processes wait for an event, once or from time to time:
//
//   - a [Latch] opens when a number of events has been counted;
//   - a [Gate] is closed and opened by its users.
package zklatch
