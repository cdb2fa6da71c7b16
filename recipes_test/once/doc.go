// Package once holds tests only: what zkonce promises.
package once
