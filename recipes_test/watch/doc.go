// Package watch holds tests only: what zkwatch promises.
package watch
