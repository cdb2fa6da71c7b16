// Package atomic holds tests only: what the types of zkatomic promise.
package atomic
