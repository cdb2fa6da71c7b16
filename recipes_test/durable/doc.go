// Package durable holds tests only: what zkdurable promises.
package durable
