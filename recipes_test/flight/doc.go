// Package flight holds tests only: what zkflight promises.
package flight
