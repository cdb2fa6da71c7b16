// Package zkrate is golang.org/x/time/rate for many machines: all processes together stay below one limit. No
// call costs a request: each process has a share of the limit, which changes as processes need more or less.
//
// The processes have at most burst tokens together, and get at most limit tokens a second. So in a window of any
// length, however processes die or are cut off, no more happens than that length allows, and one burst. docs/rate.md
// says what that depends on, how shares move, and counts the requests.
package zkrate
