// Package election holds tests only: what zkelection promises.
package election
