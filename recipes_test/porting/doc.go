// Package porting holds tests only: the classes of docs/porting/classes.md and docs/porting/services.md, as they are in Go.
package porting
