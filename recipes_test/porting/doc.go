// Package porting holds tests only: the classes of docs/porting.md, as they are in Go.
package porting
