// Package session holds tests only: what a session promises: connecting, what its listeners see,
// its file, and its end.
package session
