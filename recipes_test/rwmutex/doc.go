// Package rwmutex holds tests only: what zkrwmutex promises.
package rwmutex
